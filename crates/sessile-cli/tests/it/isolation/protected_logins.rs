//! Logins in the addresses of registries: `https://USER:PASSWORD@HOST/` is the registry `https://HOST/`.

use testkit::Home;

use crate::isolation::protected::run;
use crate::{home, room};

const PRODUCTION: &str = "https://npm.corp.example/prod/";

fn guarded(tool: &str) -> Home {
    let home = home();
    for (name, guard, registry) in [
        ("production", "guard = \"explicit\"\n", PRODUCTION),
        ("staging", "", "https://npm.corp.example/staging/"),
    ] {
        let text = format!("{guard}[tools.{tool}]\nregistry = \"{registry}\"\n");
        home.write(format!(".config/sessile/contexts/{name}.toml"), text);
    }
    home
}

/// A tool with its own file, the copy, and lines with logins of the protected registry and of others.
const FILES: &[(&str, &str, &str, &str)] = &[
    (
        "npm",
        ".npmrc",
        "npm/npmrc",
        "registry=https://u:GO1@npm.corp.example/prod/\n@corp:registry=\"https://GO2@npm.corp.example:443/prod/sub/\"\r\n\
         '@${SCOPE}:registry' = HTTPS://u:GO3@NPM.corp.example./prod\n@other:registry=https://u:${GO4}@npm.corp.example/prod/\n\
         @public:registry=https://u:KEEP@public.example/\nproxy=http://u:PROXY@npm.corp.example/prod/\n",
    ),
    (
        "pnpm",
        ".config/pnpm/rc",
        "xdg/config/pnpm/rc",
        "registry=https://u:GO1@npm.corp.example/prod/\n@public:registry=https://u:KEEP@public.example/\n",
    ),
    (
        "pnpm",
        ".npmrc",
        "npm/npmrc",
        "@corp:registry=https://u:GO1@npm.corp.example/prod/\n@public:registry=https://u:KEEP@public.example/\n",
    ),
    (
        "yarn",
        ".yarnrc.yml",
        "home/.yarnrc.yml",
        "npmRegistryServer: https://u:GO1@npm.corp.example/prod\nnpmScopes:\n  corp:\n    npmRegistryServer: https://u:GO2@npm.corp.example/prod/\n\
         \x20 public:\n    npmRegistryServer: https://u:KEEP@public.example/\n",
    ),
    (
        "yarn",
        ".yarnrc",
        "home/.yarnrc",
        "registry \"https://u:GO1@npm.corp.example/prod/\"\n\"@corp:registry\" https://u:GO2@npm.corp.example/prod\n\
         \"@public:registry\" \"https://u:KEEP@public.example/\"\n",
    ),
    (
        "yarn",
        ".npmrc",
        "home/.npmrc",
        "registry=https://u:GO1@npm.corp.example/prod/\n@public:registry=https://u:KEEP@public.example/\n",
    ),
];

#[test]
fn address_of_a_registry_stays_without_its_login() {
    let mut wrong = Vec::new();
    for (tool, original, copy, text) in FILES {
        let home = guarded(tool);
        home.write(original, *text);
        run(&home, &["--session", "s1", "--isolate", "home"], &["true"]).ok();
        run(&home, &["--session", "s2", "--isolate", "home", "--context", "staging"], &["true"]).ok();
        for (session, has_others) in [("s1", true), ("s2", false)] {
            let held = std::fs::read_to_string(room(&home, session).join(copy)).unwrap_or_default();
            let has_all =
                held.lines().count() == text.lines().count() && held.contains("//npm.corp.example/prod");
            if held.contains("GO") || held.contains("KEEP") != has_others || !has_all {
                wrong.push(format!("{tool} {session}: {held}"));
            }
            if text.contains("PROXY") && !held.contains("PROXY") {
                wrong.push(format!("{tool} {session}: the login of the proxy is missing: {held}"));
            }
        }
        assert_eq!(home.read(original), *text, "the user's own file");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tool_with_a_login_of_a_protected_registry_does_not_start() {
    for (tool, file) in [("npm", ".npmrc"), ("pnpm", ".config/pnpm/rc")] {
        for registry in ["https://u:PW@npm.corp.example/prod/", "https://npm.corp.example:443/prod"] {
            let home = guarded(tool);
            home.write(file, format!("registry={registry}\n"));
            home.write("p/package.json", "{}");
            let other = run(&home, &["--session", "s1"], &["true"]).cwd("p").ok();
            assert!(!other.told().contains("PW"), "{}", other.told());
            for flags in [&["-ojson", "--session", "s1"][..], &["-ojson"]] {
                let done = run(&home, flags, &[tool, "ping"]).cwd("p").run().exit(125);
                assert_eq!(done.code(), "PROTECTED_TARGET", "{tool} {registry}: {}", done.told());
                assert!(!done.told().contains("PW"), "{}", done.told());
            }
            let plan = std::fs::read_to_string(room(&home, "s1").join("plan.json")).unwrap();
            assert!(!plan.contains("PW"), "{plan}");
            for command in [
                &["status"][..],
                &["status", "-ojson"],
                &["import", "--dry-run"],
                &["context", "show", "production"],
            ] {
                let done = home.call(command).run();
                assert!(!done.told().contains("PW"), "{}", done.told());
            }
        }
        let home = guarded(tool);
        let variable = format!("{}_CONFIG_REGISTRY", tool.to_uppercase());
        let call =
            run(&home, &["-ojson"], &[tool, "ping"]).env(&variable, "https://u:PW@npm.corp.example/prod/");
        let done = call.run().exit(125);
        assert_eq!(done.code(), "PROTECTED_TARGET", "{}", done.told());
        assert!(!done.told().contains("PW"), "{}", done.told());
    }
}

/// Of a project in the home, the user's own file is the project's too.
#[test]
fn npm_in_the_home_does_not_start_with_the_login_of_a_scope() {
    let home = guarded("npm");
    home.write(".npmrc", "@corp:registry=https://u:PW@npm.corp.example/prod/\n");
    let done = run(&home, &["-ojson"], &["npm", "ping"]).cwd("").run().exit(125);
    assert_eq!(done.code(), "PROTECTED_TARGET", "{}", done.told());
    home.write(".npmrc", "@corp:registry=https://npm.corp.example/prod/\n");
    run(&home, &["-ojson"], &["npm", "--version"]).cwd("").ok();
}
