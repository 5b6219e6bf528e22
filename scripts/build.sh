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
printf '%s\n' "$node" >"$stamp"
# A source dated in the future (a clock that was wrong) must not mean a build at each start.
while future=$(find src native scripts package.json package-lock.json -newer "$stamp" -print -quit) && [ -n "$future" ]; do
  touch -r "$future" "$stamp"
done

sh scripts/build-addon.sh
sh scripts/build-helper.sh
"$node" scripts/build-bundle.mjs
if [ "${1-}" != --run-only ]; then "$node" scripts/build-types.mjs; fi
mv "$stamp" build/ready
