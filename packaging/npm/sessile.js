#!/usr/bin/env node
// Starts the program, which is in the package of this platform.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { optionalDependencies = {}, version } = require("./package.json");

function fail(problem, hint) {
  process.stderr.write(`error: ${problem}\nhint: ${hint}\n`);
  process.exit(1);
}

function find() {
  const platform = `${process.platform}-${process.arch}`;
  const name = `@sessile/${platform}`;
  try {
    return require.resolve(`${name}/bin/sessile`);
  } catch {
    if (process.platform === "win32") fail("Windows is not supported", "use sessile in WSL");
    if (!(name in optionalDependencies)) {
      fail(`the npm package does not support ${platform}`, "build the program: cargo install sessile-cli");
    }
    // With --omit=optional, or with a node_modules from another machine.
    return fail(`npm package "${name}" not found`, `install it: npm install ${name}@${version}`);
  }
}

const program = find();
const args = process.argv.slice(2);
// The terminal is the program's own: without this process in between where node can do that.
if (typeof process.execve === "function") {
  try {
    process.execve(program, [program, ...args], process.env);
  } catch (error) {
    fail(`cannot start ${program}: ${error.message}`, `install it again: npm install sessile@${version}`);
  }
}

const child = spawn(program, args, { stdio: "inherit" });
// A terminal sends these to the program as well, which decides what they mean.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  fail(`cannot start ${program}: ${error.message}`, `install it again: npm install sessile@${version}`);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
