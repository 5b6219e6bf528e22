#!/bin/sh
# left-behind.sh DIRECTORY [SECONDS]: a line for each thing that the tests left in their temporary directory, and for each
# process of theirs that still runs: everything they start has that directory in its environment or works below it.
# SECONDS: how long a process that is about to end has for it (the last one of a run waits for the others).
set -u

directory=$1
limit=${2:-10}

processes() {
  {
    grep -lsaF "$directory" /proc/[0-9]*/environ
    find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$directory" -o -lname "$directory/*" \) 2>/dev/null
  } | cut -d / -f 3 | sort -u | while read -r process; do
    # One that has ended, and only waits for its parent to take note, has no command line.
    command=$(tr '\0' ' ' 2>/dev/null <"/proc/$process/cmdline" | sed 's/ *$//' | cut -c 1-150)
    [ -z "$command" ] || echo "still running: $process $command"
  done
}

waited=0
while left=$(processes) && [ -n "$left" ] && [ "$waited" -lt "$limit" ]; do
  sleep 1
  waited=$((waited + 1))
done
[ -z "$left" ] || echo "$left"
ls -Ab "$directory" | sed 's/^/left in the temporary directory: /'
