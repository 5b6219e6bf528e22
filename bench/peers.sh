#!/bin/bash
# Times what people would use instead of us on one tree. Each step prints "NAME SECONDS", or fails.
# usage: peers.sh TREE SCRATCH STEP…      run.ts calls it step by step, in between its own measurements
#   walk                      find over the tree, with sizes and times
#   tar-first                 tar | zstd -1 -T2
#   git-first   git-noop   git-ten   git-restore      add -A and commit into a shadow repository; checkout -f
#   restic-first restic-noop restic-ten restic-restore
#   borg-first  borg-noop  borg-ten
#   rsync-first rsync-noop    --link-dest
#   cp-restore                cp -a of a copy that cp-prepare (not timed) made
#   sizes                     prints "NAME BYTES" for each store
# first: nothing stored yet, noop: nothing changed, ten: ten files changed, restore: node_modules was removed
set -u
missing=
for program in git restic borg:borgbackup rsync zstd tar bc; do
  command -v "${program%%:*}" >/dev/null || missing="$missing ${program##*:}"
done
if [ -n "$missing" ]; then
  echo "peers.sh: not installed:$missing; run: apt-get install$missing" >&2
  exit 2
fi
if [ $# -lt 3 ]; then
  echo 'usage: peers.sh TREE SCRATCH STEP…' >&2
  exit 2
fi
mkdir -p "$2"
tree=$(realpath "$1") scratch=$(realpath "$2")
shift 2
export RESTIC_PASSWORD=bench RESTIC_REPOSITORY=$scratch/restic RESTIC_CACHE_DIR=$scratch/restic-cache
export BORG_REPO=$scratch/borg BORG_BASE_DIR=$scratch/borg-base BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes

timed() {
  local name=$1 start end
  shift
  start=$(date +%s.%N)
  "$@" >/dev/null 2>>"$scratch/errors.txt" || {
    echo "peers.sh: $name failed: $(tail -n 1 "$scratch/errors.txt")" >&2
    exit 1
  }
  end=$(date +%s.%N)
  printf '%s %.3f\n' "$name" "$(echo "$end - $start" | bc)"
}
shadow() { git --git-dir="$scratch/shadow.git" --work-tree="$tree" "$@"; }
commit() { shadow add -A -f && shadow commit -q -m x --allow-empty; }
archive() { tar -C "$tree" -cf - . | zstd -q -T2 -1 -f -o "$scratch/tree.tar.zst"; }
checkout() { (cd "$tree" && shadow checkout -q -f HEAD -- node_modules); }
snapshot_borg() { borg create -C lz4 "::$1" "$tree"; }

for step in "$@"; do
  case $step in
    walk) timed walk find "$tree" -printf '%s %T@ %p\n' ;;
    tar-first) timed tar-first archive ;;
    git-first)
      git init -q --bare "$scratch/shadow.git"
      for setting in core.bare=false gc.auto=0 user.email=bench@example.org user.name=bench commit.gpgsign=false; do
        git --git-dir="$scratch/shadow.git" config "${setting%%=*}" "${setting#*=}"
      done
      timed git-first commit
      ;;
    git-noop | git-ten) timed "$step" commit ;;
    git-restore) timed git-restore checkout ;;
    restic-first)
      restic init -q >/dev/null
      timed restic-first restic backup -q "$tree"
      ;;
    restic-noop | restic-ten) timed "$step" restic backup -q "$tree" ;;
    restic-restore) timed restic-restore restic restore latest -q --target / --include "$tree/node_modules" ;;
    borg-first)
      borg init -e none 2>/dev/null
      timed borg-first snapshot_borg first
      ;;
    borg-noop | borg-ten) timed "$step" snapshot_borg "$step" ;;
    rsync-first) timed rsync-first rsync -a "$tree/" "$scratch/rsync-0/" ;;
    rsync-noop) timed rsync-noop rsync -a --link-dest="$scratch/rsync-0" "$tree/" "$scratch/rsync-1/" ;;
    cp-prepare) cp -a "$tree/node_modules" "$scratch/node_modules" ;;
    cp-restore) timed cp-restore cp -a "$scratch/node_modules" "$tree/node_modules" ;;
    sizes)
      for store in tar:tree.tar.zst git:shadow.git restic:restic borg:borg; do
        if [ -e "$scratch/${store#*:}" ]; then
          echo "${store%%:*} $(($(du -s -k "$scratch/${store#*:}" | cut -f1) * 1024))"
        fi
      done
      ;;
    *)
      echo "peers.sh: unknown step $step" >&2
      exit 2
      ;;
  esac
done
