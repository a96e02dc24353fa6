# shellcheck shell=bash
# Sourced by scripts that need programs: `require COMMAND:PACKAGE...` installs what is missing when run as root on Debian, and says
# what to install otherwise.
require() {
  local entry missing=()
  for entry in "$@"; do
    command -v "${entry%%:*}" >/dev/null || missing+=("${entry#*:}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    printf '%s: missing; install them first, as root: apt-get install %s\n' "$0" "${missing[*]}" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
