#!/bin/sh
# Drives `savepoint mcp` with the command line of the MCP Inspector: lists tools and resources, and calls every tool.
# usage: inspect-mcp.sh      needs npm; installs the Inspector into a temporary directory (110 MB), which it removes
# Not part of `npm test`: test/mcp.test.ts does the same with the client package of the protocol.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd -P)
node=$(sh scripts/setup.sh)
INSPECTOR=@modelcontextprotocol/inspector@2.12.0
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
trap 'exit 130' INT TERM

npm install --prefix "$base/inspector" --no-save --ignore-scripts --no-audit --no-fund "$INSPECTOR" >"$base/npm.log" 2>&1 || {
  tail -n 20 "$base/npm.log" >&2
  exit 1
}
mkdir "$base/work" "$base/user"
cd "$base/work"
# The Inspector hands down HOME, not SAVEPOINT_HOME.
unset SAVEPOINT_HOME
export HOME="$base/user" PATH="$(dirname "$node"):$PATH"
inspect() { "$node" "$base/inspector/node_modules/.bin/mcp-inspector" --cli "$root/savepoint" mcp --method "$@"; }

# usage: tool NAME WORD [KEY=VALUE…]      WORD must be in the answer, which must not be an error
tool() {
  name=$1 word=$2
  shift 2
  for pair; do
    shift
    set -- "$@" --tool-arg "$pair"
  done
  answer=$(inspect tools/call --tool-name "$name" "$@")
  case $answer in *'"isError": true'*) echo "$name failed: $answer" >&2 && exit 1 ;; esac
  case $answer in *"$word"*) echo "ok  $name" ;; *) echo "$name does not say $word: $answer" >&2 && exit 1 ;; esac
  called="${called-} $name"
}

echo one >a
tool snapshots_create Took name=first
echo two >a
tool snapshots_changes '1 change' max_length=1000
tool snapshots_diff '+two' path=a
tool snapshots_revert Brought path=a checkpoint=first
tool snapshots_undo Undone
tool snapshots_create Took name=second
"$root/savepoint" run -q -- touch b
tool snapshots_create Took name=third
tool snapshots_list '"total": ' include_changes=true format=json
tool snapshots_log branch
tool snapshots_show '"lines"' checkpoint=first path=a
tool snapshots_history version path=a
tool snapshots_tag Tag name=good checkpoint=first
tool coverage protected path=a
tool commands_list touch
tool why_changed touch path=b
tool snapshots_rollback 'Would roll back' checkpoint=good dry_run=true
tool snapshots_rollback 'Rolled back' checkpoint=good 'paths=["a"]'
tool snapshots_create Took name=fourth
tool snapshots_create Took name=fifth
tool snapshots_compact 'Made of 2' 'checkpoints=["fourth","fifth"]' name=both
tool snapshots_create Took name=sixth
tool snapshots_delete snapshots_undo checkpoint=both

for name in $(inspect tools/list | sed -n 's/^ *"name": "\([a-z_]*\)",$/\1/p'); do
  case " $called " in *" $name "*) ;; *) echo "$name was not called" >&2 && exit 1 ;; esac
done
inspect resources/list | grep -q savepoint://runs/run_
inspect resources/templates/list | grep -q 'savepoint://snapshots/{checkpoint}'
inspect resources/read --uri savepoint://snapshots/first | grep -q first
inspect resources/read --uri "savepoint://events?limit=3" | grep -q next
echo 'every tool and resource answers'
