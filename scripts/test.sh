#!/bin/sh
# `npm test`: installs, builds, checks types and style, runs every test, and ends with "N passed, N failed, N skipped".
# Needs Node 20, npm, git, a C compiler and python3. Arguments go to vitest: npm test -- src/store -t pack
# A failed typecheck or lint counts as one failed test. With CI=true a skip without an accepted reason counts as failed
# (scripts/summary-reporter.mjs), and so does what the tests leave behind (scripts/left-behind.sh). What failed is said
# once more at the very end, a line for each.
set -u
cd "$(dirname "$0")/.." || exit 1

# Longer than this, and something hangs. The suite is meant to take less than 900 s; on a busy machine it takes more.
readonly LIMIT_SECONDS=2700

# package:command, and what the tests use it for.
readonly PREREQUISITES='
acl:setfacl            access control lists survive capture and restore
attr:setfattr          extended attributes, set from outside
btrfs-progs:mkfs.btrfs a small filesystem with reflinks and subvolumes
clang-14:clang-14      the programs in the kernel are what their source compiles to (not every system has this version)
e2fsprogs:mkfs.ext4    a small filesystem that fills up; chattr
git:git                ignore rules and diffs are compared with git
less:less              diff through a pager
mount:mount            mount points inside a target
patch:patch            our diffs apply with patch
podman:podman          a run inside a container, and a container inside a run
procps:ps              what is left running
python3:python3        a terminal (pty) for the CLI
strace:strace          what a tracer sees is compared with what strace sees
tar:tar                export and import
tmux:tmux              a full-screen program under run
util-linux:setpriv     tests as an ordinary user
xfsprogs:mkfs.xfs      a small filesystem with reflinks
zfs-fuse:zfs-fuse      a ZFS pool in a file
zstd:zstd              export and import
'

failed=0
failures=
fail() {
  failed=$((failed + 1))
  failures="${failures}failed: $1
"
}
finish() {
  printf %s "$failures"
  echo "$1 passed, $2 failed, $3 skipped"
  [ "$2" -eq 0 ]
  exit
}

missing=$(echo "$PREREQUISITES" | while IFS=': ' read -r package command _; do
  [ -z "$package" ] || PATH="$PATH:/usr/sbin:/sbin" command -v "$command" >/dev/null || printf '%s ' "$package"
done)
if [ -n "$missing" ]; then
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "test: installing $missing(apt)"
    export DEBIAN_FRONTEND=noninteractive
    output=$({
      apt-get update -qq
      # One that this release does not have must not keep the others away.
      present=$(for package in $missing; do apt-cache show "$package" >/dev/null 2>&1 && printf '%s ' "$package"; done)
      apt-get install -qq -y --no-install-recommends $present
    } 2>&1 </dev/null) || {
      echo "$output" | tail -n 20
      echo "test: could not install $missing; the tests that use them will be skipped"
    }
  else
    echo "test: not installed, so some tests will be skipped: $missing"
  fi
fi

if ! node=$(sh scripts/setup.sh --dev); then
  fail 'scripts/setup.sh'
  finish 0 1 0
fi

echo 'test: types'
sh scripts/check.sh types || fail 'types'
echo 'test: lint'
sh scripts/check.sh lint || fail 'lint'

echo 'test: vitest'
summary=build/test-summary
rm -f "$summary"
# The tests have a temporary directory of their own, open to all as /tmp is: what is left in it is theirs, and it goes
# away whatever happens to them.
temporary=$(mktemp -d "${TMPDIR:-/tmp}/sp.XXXXXX") || exit 1
remove_temporary() {
  # Busy is what a process that was left behind works in.
  if mountpoint -q "$temporary"; then umount "$temporary" 2>/dev/null || umount -l "$temporary"; fi
  chmod -R u+rwX "$temporary"
  rm -rf --one-file-system "$temporary"
}
trap remove_temporary EXIT
trap 'exit 130' INT TERM
sh scripts/test-disk.sh "$temporary" 2>/dev/null
chmod 1777 "$temporary" || exit 1
TMPDIR=$temporary timeout --foreground -k 10 "$LIMIT_SECONDS" \
  "$node" --disable-warning=ExperimentalWarning node_modules/vitest/vitest.mjs run "$@" </dev/null
code=$?
if { read -r passed broken skipped && list=$(cat); } 2>/dev/null <"$summary"; then
  failed=$((failed + broken))
  [ -z "$list" ] || failures="$failures$list
"
  [ "$code" -eq 0 ] || [ "$broken" -ne 0 ] || fail "every test passed, yet vitest ended with $code"
else
  fail "vitest ended with $code before it could count the tests (124 means the limit of $LIMIT_SECONDS s)"
  passed=0 skipped=0
fi
left=$(sh scripts/left-behind.sh "$temporary")
if [ -n "$left" ]; then
  if [ "${CI:-}" = true ]; then fail "$(echo "$left" | sed "2,\$ s/^/failed: /")"; else echo "$left"; fi
fi
finish "$passed" "$failed" "$skipped"
