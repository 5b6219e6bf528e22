#!/bin/sh
# Connects real agents with `savepoint connect`, asks each whether it sees the server, and disconnects them.
# usage: check-agents.sh      needs npm; installs the agents into a temporary directory (about 1 GB), which it removes
# Not part of `npm test`: test/connect.test.ts checks what is written. Nobody has to be logged in anywhere.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd -P)
node=$(sh scripts/setup.sh)
base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
trap 'exit 130' INT TERM

npm install --prefix "$base/agents" --no-save --no-audit --no-fund @anthropic-ai/claude-code @openai/codex @google/gemini-cli \
  opencode-ai >"$base/npm.log" 2>&1 || {
  tail -n 20 "$base/npm.log" >&2
  exit 1
}
mkdir "$base/work" "$base/user"
cd "$base/work"
unset SAVEPOINT_HOME CLAUDE_CONFIG_DIR CODEX_HOME XDG_CONFIG_HOME
export HOME="$base/user" PATH="$base/agents/node_modules/.bin:$(dirname "$node"):$PATH" GEMINI_CLI_TRUST_WORKSPACE=true

# usage: check AGENT SCOPE WORD      WORD stands in the line of `AGENT mcp list` that names us
check() {
  "$root/savepoint" connect -q "$1" --scope "$2"
  listed=$("$1" mcp list 2>&1 | grep savepoint | head -n 1 || :)
  case $listed in *"$3"*) echo "ok  $1 ($2): $listed" ;; *) echo "$1 ($2) does not say $3: $listed" >&2 && exit 1 ;; esac
  "$root/savepoint" connect -q "$1" --scope "$2" --remove
  if "$1" mcp list 2>&1 | grep -q "$root/savepoint"; then echo "$1 ($2) is still connected" >&2 && exit 1; fi
}

# A prompt that reaches nobody: its hook is called all the same.
"$root/savepoint" connect -q claude
ANTHROPIC_API_KEY=none ANTHROPIC_BASE_URL=http://127.0.0.1:9 CLAUDE_CODE_MAX_RETRIES=0 claude -p hello >/dev/null 2>&1 || :
turn=$("$root/savepoint" snapshots --json | grep '"label": "claude .* turn 1"') || { echo 'the hook of claude was not called' >&2 && exit 1; }
echo "ok  claude (hook):$turn"
"$root/savepoint" connect -q claude --remove

check claude user Connected
check claude project 'Pending approval'
check codex user enabled
check gemini project Connected
check gemini user Connected
check opencode project connected
check opencode user connected
