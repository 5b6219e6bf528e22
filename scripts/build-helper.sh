#!/bin/sh
# Compiles native/helper into build/savepoint-helper, or into the file named as argument: one static program, so that it
# runs in any root filesystem. Does nothing when the output is newer than every source. Honours $CC and $CFLAGS.
set -eu
cd "$(dirname "$0")/.."

output=${1:-build/savepoint-helper}
cc=${CC:-cc}
sources=native/helper

# Tracing needs Linux; everything else works without.
[ "$(uname -s)" = Linux ] || exit 0
if [ -f "$output" ] && [ -z "$(find "$sources" native/ebpf scripts/build-helper.sh -newer "$output" \( -name '*.[cho]' -o -name '*.sh' \) -print)" ]; then
  exit 0
fi
mkdir -p "$(dirname "$output")"
work=$(mktemp -d "$output.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck disable=SC2086 # $CC may carry arguments, such as "ccache gcc"
compile() { $cc -std=c11 -O2 -Wall -Wextra -Werror -pthread "$@" ${CFLAGS:-} "$sources"/*.c -o "$work/savepoint-helper"; }
# Systems that ship no static C library get a program that works in their own root filesystem only.
compile -static || compile
mv "$work/savepoint-helper" "$output"
