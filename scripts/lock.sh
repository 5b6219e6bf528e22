# Sourced at the root of the checkout: waits until no other process installs or builds here, and keeps others out until
# this shell and its children have ended. The children share the lock on purpose: an npm that outlives a killed setup
# still writes to node_modules.
[ -e build/lock ] || : >build/lock
if command -v flock >/dev/null 2>&1; then
  exec 9<build/lock
  flock -n 9 || {
    echo 'savepoint: waiting for another process that is installing or building here…' >&2
    flock 9
  }
else
  # No flock (macOS): a directory that names its owner. A dead owner's is moved away first, so that one waiter wins.
  until mkdir build/lock.d 2>/dev/null; do
    owner=$(cat build/lock.d/pid 2>/dev/null || :)
    if [ -n "$owner" ] && ! ps -p "$owner" >/dev/null 2>&1; then
      mv build/lock.d "build/lock.d.$$" 2>/dev/null && rm -rf "build/lock.d.$$"
    else
      sleep 1
    fi
  done
  echo $$ >build/lock.d/pid
  trap 'rm -rf build/lock.d' EXIT
  trap 'exit 130' HUP INT TERM
fi
