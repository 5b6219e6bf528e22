#!/bin/sh
# Typecheck and lint. usage: check.sh [types|lint]      both when none is named
set -u
cd "$(dirname "$0")/.." || exit 1
node=$(sh scripts/setup.sh --dev) || exit 1
failed=0
for part in ${1:-types lint}; do
  case $part in
    types) "$node" node_modules/typescript/bin/tsc || failed=1 ;;
    lint) "$node" node_modules/@biomejs/biome/bin/biome check --max-diagnostics=20 || failed=1 ;;
    *)
      echo "usage: check.sh [types|lint]" >&2
      exit 2
      ;;
  esac
done
exit $failed
