#!/bin/sh
# Installs sessile @VERSION@ below ~/.local: the program, manual pages and completions.
#
#   sh install.sh                     into ~/.local
#   sh install.sh --prefix /usr/local
#   sh install.sh --uninstall
#
# SESSILE_DOWNLOAD_URL names another place with the same files. Nothing is installed unless its checksum is the published one.
set -eu

VERSION=@VERSION@
URL=${SESSILE_DOWNLOAD_URL:-https://github.com/sessile/sessile/releases/download/v$VERSION}

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

prefix=${HOME:-}/.local
uninstall=
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -gt 1 ] || fail '--prefix requires a directory'; prefix=$2; shift ;;
    --uninstall) uninstall=yes ;;
    *) echo 'usage: install.sh [--prefix DIR] [--uninstall]' >&2; exit 2 ;;
  esac
  shift
done
case $prefix in /.local | '') fail 'HOME is not set; pass --prefix DIR' ;; /*) ;; *) fail '--prefix requires an absolute path' ;; esac

if [ -n "$uninstall" ]; then
  rm -f "$prefix/bin/sessile" "$prefix/share/man/man1/sessile.1" "$prefix/share/man/man1/sessile-"*.1 \
    "$prefix/share/bash-completion/completions/sessile" "$prefix/share/zsh/site-functions/_sessile" \
    "$prefix/share/fish/vendor_completions.d/sessile.fish"
  echo "removed sessile from $prefix; its state in ~/.config/sessile and ~/.local/state/sessile is left"
  exit 0
fi

case $(uname -s)-$(uname -m) in
  Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
  Linux-aarch64 | Linux-arm64) target=aarch64-unknown-linux-gnu ;;
  Darwin-x86_64) target=x86_64-apple-darwin ;;
  Darwin-arm64) target=aarch64-apple-darwin ;;
  MINGW* | MSYS* | CYGWIN*) fail 'Windows is not supported; run this in WSL' ;;
  *) fail "no package for $(uname -s) on $(uname -m)" ;;
esac
name=sessile-$VERSION-$target

if command -v curl >/dev/null; then
  download() { curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"; }
elif command -v wget >/dev/null; then
  download() { wget -q -O "$2" "$1"; }
else
  fail 'curl or wget is required'
fi
if command -v sha256sum >/dev/null; then
  checksum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null; then
  checksum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
  fail 'sha256sum or shasum is required'
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
download "$URL/SHA256SUMS" "$work/SHA256SUMS" || fail "cannot download $URL/SHA256SUMS"
expected=$(sed -n "s/^\\([0-9a-f]\\{64\\}\\)  $name\\.tar\\.gz\$/\\1/p" "$work/SHA256SUMS")
[ -n "$expected" ] || fail "no package for $target in $URL"
download "$URL/$name.tar.gz" "$work/$name.tar.gz" || fail "cannot download $URL/$name.tar.gz"
found=$(checksum "$work/$name.tar.gz")
[ "$found" = "$expected" ] || fail "checksum mismatch of $name.tar.gz: expected $expected, found $found"

tar -C "$work" -xzf "$work/$name.tar.gz"
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
  "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
# A rename: a running program keeps its file.
cp "$work/$name/bin/sessile" "$prefix/bin/.sessile-new"
chmod 755 "$prefix/bin/.sessile-new"
mv -f "$prefix/bin/.sessile-new" "$prefix/bin/sessile"
cp "$work/$name/share/man/man1/"*.1 "$prefix/share/man/man1/"
cp "$work/$name/share/bash-completion/completions/sessile" "$prefix/share/bash-completion/completions/"
cp "$work/$name/share/zsh/vendor-completions/_sessile" "$prefix/share/zsh/site-functions/"
cp "$work/$name/share/fish/vendor_completions.d/sessile.fish" "$prefix/share/fish/vendor_completions.d/"
echo "installed sessile $VERSION in $prefix/bin"
case :$PATH: in
  *:"$prefix/bin":*) ;;
  *) echo "add it to the PATH of your shell: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
