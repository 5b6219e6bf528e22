#!/bin/sh
# Makes the checkout ready to run: installs dependencies and builds, each only when needed. Prints the node to use.
# usage: setup.sh [--dev]      --dev also installs what tests and checks need, and builds the types of the library
# May be called any number of times, and by several processes at once: one works, the others wait for it.
# The output of npm and the compiler goes to build/setup.log and is shown only when something fails.
set -eu
cd "$(dirname "$0")/.."
savepoint_root=$(pwd -P)
log=build/setup.log
dev=
[ "${1-}" = --dev ] && dev=1

say() { echo "savepoint: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# Shows what failed: the sentence that a script of ours wrote, or the end of the log and then the sentence given.
fail() {
  sentence=$(grep '^Cannot ' "$log" | tail -n 1 || :)
  [ -n "$sentence" ] && die "$sentence"
  tail -n 40 "$log" >&2
  die "$1 (whole output: $savepoint_root/$log)"
}

usable() {
  [ -n "$savepoint_node" ] && { [ -z "$dev" ] || { [ -d node_modules/typescript ] && [ -f dist/types/index.d.ts ]; }; }
}

# Complete when npm wrote its own lock file at the end, for this package-lock.json: an equal copy or an older date.
installed() {
  [ -f node_modules/.package-lock.json ] || return 1
  [ -z "$dev" ] || [ -d node_modules/typescript ] || return 1
  cmp -s package-lock.json build/installed-lock.json || ! [ package-lock.json -nt node_modules/.package-lock.json ]
}

# `npm ci` would first delete a node_modules that live processes may be loading from, and it refuses a lock file that
# was written where a registry lacks packages of other platforms. `install --no-save` keeps to the locked versions and
# hashes, leaves the lock file alone and changes only what differs.
install() {
  command -v node >/dev/null 2>&1 ||
    die 'Cannot install dependencies: there is no node; install Node.js 20 or newer with npm (apt-get install nodejs npm)'
  major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
  [ "$major" -ge 18 ] ||
    die "Cannot install dependencies: node $(node --version 2>&1 | head -n 1) is too old; install Node.js 20 or newer"
  command -v npm >/dev/null 2>&1 || die 'Cannot install dependencies: there is no npm; install it (apt-get install npm)'
  scope=--omit=dev
  if [ -n "$dev" ] || [ -d node_modules/typescript ]; then scope=--include=dev; fi
  if [ -d node_modules ]; then say 'updating dependencies…'; else say 'installing dependencies (first use, about a minute)…'; fi
  npm install --no-save --include=optional "$scope" --no-audit --no-fund >"$log" 2>&1 || {
    if grep -Eq 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH' "$log"; then
      fail 'Cannot install dependencies: the npm registry cannot be reached; check the network and `npm config get registry`'
    fi
    fail 'Cannot install dependencies: npm failed, see above'
  }
  # npm leaves it out of a package.
  if [ -f package-lock.json ]; then cp package-lock.json build/installed-lock.json; fi
}

. scripts/ready.sh
if ! usable; then
  if ! [ -w . ] || ! mkdir -p build 2>/dev/null || ! [ -w build ]; then
    # Somebody else's checkout: an older build of it is better than none, as long as it is said.
    savepoint_node=$(sh scripts/choose-node.sh 2>/dev/null || :)
    if [ -z "$dev" ] && [ -n "$savepoint_node" ] && [ -f build/ready ] && [ -f build/savepoint.node ] && [ -f dist/cli.cjs ]; then
      say "$savepoint_root has changed since it was built and you cannot write there: running the older build"
    else
      die "Cannot build savepoint: you cannot write to $savepoint_root; have its owner run $savepoint_root/savepoint --version once"
    fi
  else
    . scripts/lock.sh
    . scripts/ready.sh
    if ! usable; then
      installed || install
      say 'building…'
      only=--run-only
      [ -z "$dev" ] || only=
      # shellcheck disable=SC2086 # empty means no argument
      locked=1 sh scripts/build.sh $only >"$log" 2>&1 || fail 'Cannot build savepoint: the build failed, see above'
      . scripts/ready.sh
      # A source was saved while it was being built: this start uses what it asked for, the next one builds again.
      [ -n "$savepoint_node" ] || savepoint_node=$(sh scripts/choose-node.sh)
    fi
  fi
fi
case $savepoint_node in /*) ;; *) savepoint_node=$savepoint_root/$savepoint_node ;; esac
printf '%s\n' "$savepoint_node"
