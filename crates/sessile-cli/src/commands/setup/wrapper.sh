#!/bin/sh
# Starts {agent} in a session of its own. Made by `sessile setup`; `sessile setup --undo` removes it.
wrappers={wrappers}
real=
set -f
old=$IFS
IFS=:
for dir in $PATH; do
  if [ -n "$dir" ] && [ "$dir" != "$wrappers" ] && [ -f "$dir/{agent}" ] && [ -x "$dir/{agent}" ]; then
    real=$dir/{agent}
    break
  fi
done
IFS=$old
set +f
if [ -z "$real" ]; then
  echo "{agent}: not found on the PATH" >&2
  exit 127
fi
# Inside a session the agent belongs to it.
if [ -n "${SESSILE_SESSION:-}" ]; then
  exec "$real" "$@"
fi
exec {program} {run} -- "$real" "$@"
