#!/bin/sh
# Builds the native addon and the helper, the bundle in dist/ and, unless --run-only is given, the types of the library.
# build/ready is written last and makes the build count; it is dated at the start, so that a source saved meanwhile is
# newer than it.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
[ -n "${locked-}" ] || . scripts/lock.sh

stamp=build/ready.new
node=$(sh scripts/choose-node.sh)
# What V8 is told at each start. A run is often over before optimised code pays; compiling it would take time from the command
# on the other processor. These names are V8's own: where they are others, we do without.
# What is loaded at the start stays: to collect garbage because of it would be for nothing.
flags='--min-semi-space-size=8 --max-semi-space-size=8 --initial-heap-size=64'
patient='--invocation-count-for-maglev=5000 --invocation-count-for-turbofan=30000 --invocation-count-for-osr=5000'
# shellcheck disable=SC2086
if "$node" $patient -e 0 2>/dev/null; then flags="$flags $patient"; fi
printf '%s\n%s\n' "$node" "$flags" >"$stamp"
# A source dated in the future (a clock that was wrong) must not mean a build at each start.
while future=$(find src native scripts package.json package-lock.json -newer "$stamp" -print -quit) && [ -n "$future" ]; do
  touch -r "$future" "$stamp"
done

sh scripts/build-addon.sh
sh scripts/build-helper.sh
NODE_FLAGS=$flags "$node" scripts/build-bundle.mjs
if [ "${1-}" != --run-only ]; then "$node" scripts/build-types.mjs; fi
mv "$stamp" build/ready
