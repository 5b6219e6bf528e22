#!/bin/sh
# Compiles native/addon into build/savepoint.node, or into the file named as argument. Does nothing when the output is
# newer than every source. Honours $CC and $CFLAGS.
set -eu
cd "$(dirname "$0")/.."

output=${1:-build/savepoint.node}
cc=${CC:-cc}
sources=native/addon
headers=node_modules/node-api-headers/include

if [ -f "$output" ] && [ -z "$(find "$sources" scripts/build-addon.sh -newer "$output" \( -name '*.[ch]' -o -name '*.sh' \) -print)" ]; then
  exit 0
fi
# shellcheck disable=SC2086 # $CC may carry arguments, such as "ccache gcc"
if ! command -v ${cc%% *} >/dev/null 2>&1; then
  echo "Cannot build the native addon: there is no C compiler (${cc%% *}); run: apt-get install gcc libc6-dev" >&2
  exit 1
fi
if [ ! -f "$headers/node_api.h" ]; then
  echo "Cannot build the native addon: $headers is missing; run: npm install" >&2
  exit 1
fi

mkdir -p "$(dirname "$output")"
work=$(mktemp -d "$output.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Compiled side by side; a failed one leaves no object, and then the link fails.
pids=
for source in "$sources"/*.c; do
  # shellcheck disable=SC2086
  $cc -std=c11 -O2 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -pthread -DNAPI_VERSION=8 -isystem "$headers" \
    ${CFLAGS:-} -c "$source" -o "$work/$(basename "$source" .c).o" &
  pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
[ "$failed" = 0 ] || exit 1
# shellcheck disable=SC2086
$cc -shared -pthread -Wl,-z,relro,-z,now ${CFLAGS:-} "$work"/*.o -o "$work/savepoint.node"
mv "$work/savepoint.node" "$output"
