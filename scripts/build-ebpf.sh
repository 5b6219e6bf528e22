#!/bin/sh
# For developers: compiles native/ebpf/exec.bpf.c into native/ebpf/exec.bpf.o, or into the file named as argument. The object
# is part of the repository, so that whoever builds or runs Savepoint needs no clang. Commit both together; test/ebpf.test.ts
# compares them. Needs clang 14 (Debian 12: apt-get install clang-14): other versions make other bytes.
set -eu
output=${1:-$(dirname "$0")/../native/ebpf/exec.bpf.o}
case $output in /*) ;; *) output=$(pwd)/$output ;; esac
# Names of files are written into the object: as they are seen from here, on any machine.
cd "$(dirname "$0")/../native/ebpf"

clang=${CLANG:-clang-14}
work=$(mktemp "$output.XXXXXX")
trap 'rm -f "$work"' EXIT
# v3: atomic operations that return what was there before (Linux 5.12). -g: the types, without which nothing fits.
"$clang" -target bpfel -mcpu=v3 -O2 -g -ffreestanding -fdebug-compilation-dir=. -Wall -Wextra -Werror -c exec.bpf.c -o "$work"
chmod 644 "$work"
mv "$work" "$output"
