#!/bin/sh
# Tries an installed sessile: the demonstration, completions, manual pages, the service. It runs where there is no Rust.
#
#   smoke.sh [VERSION]     SESSILE names another program than the one on the PATH
set -eu

fail() { printf 'smoke: %s\n' "$*" >&2; exit 1; }

for tool in cargo rustc; do
  if command -v "$tool" >/dev/null; then fail "$tool is installed: this is not a clean root"; fi
done

sessile=${SESSILE:-sessile}
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT
export HOME="$dir"
cd "$dir"

said=$($sessile --version)
case $said in "sessile ${1:-}"*) ;; *) fail "--version printed $said" ;; esac
# A package that cannot be traced to its sources is none.
$sessile --version --verbose > build
grep -qE '^commit    [0-9a-f]{40}(-dirty)?$' build || { cat build >&2; fail 'the build names no commit'; }
grep -q '^target .*(static)$' build || { cat build >&2; fail 'the program is not static'; }

$sessile demo --agents 2 --tool git --output json > demo.json 2>demo.err || { cat demo.err >&2; fail 'demo failed'; }
grep -q '"git"' demo.json || fail 'demo did not try git'

# The script must load, and the program must answer it.
$sessile completions bash > completions.bash
bash -c 'source ./completions.bash && complete -p sessile' >/dev/null || fail 'the completion script does not load'
for shell in zsh fish; do $sessile completions $shell | grep -q SESSILE_COMPLETE || fail "no completions for $shell"; done
answer=$(_CLAP_IFS=' ' _CLAP_COMPLETE_INDEX=1 SESSILE_COMPLETE=bash $sessile -- sessile stat)
[ "$answer" = status ] || fail "completing \"stat\" answered \"$answer\""

$sessile man > sessile.1
grep -q '^\.TH ' sessile.1 || fail 'no manual page'
if command -v man >/dev/null; then
  MANPAGER='cat' man -l sessile.1 | grep -q SYNOPSIS || fail 'man cannot show the page'
fi

$sessile --no-config user add ann --store "$dir/service.db" >/dev/null 2>&1
$sessile --no-config user token create ann --store "$dir/service.db" --output json | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p' > ann.token
$sessile --no-config serve --store "$dir/service.db" --listen 127.0.0.1:0 --log off > serve.out 2>serve.err &
server=$!
i=0
until grep -qs 'serving on' serve.out; do
  i=$((i + 1))
  if [ $i -gt 100 ]; then cat serve.err >&2; fail 'serve did not start'; fi
  sleep 0.1
done
url=$(sed -n 's/.*serving on \(http[^ ]*\).*/\1/p' serve.out)
$sessile auth login --server "$url" --token-stdin < ann.token >/dev/null 2>&1 || fail 'the service refuses the token'
$sessile session start --server "$url" --name smoke >/dev/null 2>&1 || fail 'the service starts no session'
$sessile session list --server "$url" | grep -q smoke || fail 'the session is not listed'
kill "$server"
wait "$server" || fail 'serve did not end well'
server=
printf 'ok: %s\n' "$said"
