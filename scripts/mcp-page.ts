/** docs/mcp.md: what the MCP server offers, from the rows of its tools. */
import { describeTool, tools } from '../src/mcp/tools.ts'

interface Property {
  type?: string
  enum?: string[]
  items?: { type?: string }
  default?: unknown
  description?: string
}

const PAGED = ['start_index', 'max_length', 'format']

export const mcpPage: string[] = [
  '`savepoint mcp` serves the [Model Context Protocol](https://modelcontextprotocol.io) on standard input and output, with the official SDK: an',
  'agent starts it and gets tools to keep, compare and bring back states of the directory it works in. Each tool is a row that refers to an',
  'operation of `src/api/table.ts`; nothing is done here that the command line cannot do.',
  '',
  '`savepoint connect AGENT` writes it into the settings of an agent, and `--remove` takes it out again. By hand, where they are JSON:',
  '',
  '```json',
  '{ "mcpServers": { "savepoint": { "command": "/path/to/savepoint", "args": ["mcp"] } } }',
  '```',
  '',
  '| Agent | `--scope project` | `--scope user` |',
  '| --- | --- | --- |',
  '| claude | `.mcp.json` (default; Claude Code asks once) | `~/.claude.json` |',
  '| codex | `.codex/config.toml` (trusted directories) | `~/.codex/config.toml` (default) |',
  '| gemini | `.gemini/settings.json` (default; trusted folders) | `~/.gemini/settings.json` |',
  '| cursor | `.cursor/mcp.json` (default) | `~/.cursor/mcp.json` |',
  '| opencode | `opencode.json` or `opencode.jsonc` (default) | the same in `~/.config/opencode` |',
  '',
  'Everything else in the file stays as it is, comments and mode included; a copy of what was there is kept beside it as `….before-savepoint` until',
  '`--remove` brings that back. The entry names the program by its path where PATH does not lead to it, and the store (`--home`) where it is not the',
  'usual one, because agents do not hand their environment down. `sh scripts/check-agents.sh` tries it with the real agents,',
  'but for Cursor, whose program is in no package registry: what is written for it follows its documentation, and was not run.',
  '',
  'It works on the timeline of the directory that it is started in, or of `-t DIR`, also where none exists yet: `snapshots_create` then begins one.',
  'Each call opens the timeline and closes it again, so that several servers and the command line work side by side. While a run goes',
  'on, what changes something is carried out by it ([control.md](control.md)). A server that was started inside of a run does not stop it,',
  'and may not delete what protects it.',
  '',
  '## A snapshot per turn of Claude Code',
  '',
  '`savepoint connect claude` also registers `savepoint hook claude` for UserPromptSubmit, PreToolUse and PostToolUse (of Bash, Edit, MultiEdit, Write,',
  'NotebookEdit) and Stop: in `.claude/settings.local.json`, which is yours alone, or in `~/.claude/settings.json`. A prompt leaves a snapshot of type `turn`,',
  'the other events one where something changed since the last. It carries agent, session, turn, event and tool (`turn` in `savepoint log --json`, `show`,',
  'the API and `snapshots_list`). Its label says the same, and is a name like any other:',
  '',
  '```',
  'savepoint rollback "claude 6f1c2a… turn 3"          before the third prompt of that session',
  'savepoint rollback "claude 6f1c2a… turn 3: Edit"    after an edit of it; several of that name are told apart by their ids',
  '```',
  '',
  'What was prompted is not recorded. Turns are thinned out as other automatic snapshots are, in spite of their labels, by the hook itself where no run does it. A hook that fails says why to',
  'the user, with exit code 1, and never stops the agent.',
  '',
  '## Answers',
  '',
  '- Short text, and the same as structured content, which follows the output schema of the tool.',
  '- Lists come in pages: `start_index` is the element to begin with, `max_length` the characters per page, about, in text and in JSON alike. An answer',
  '  that has more ends with the `start_index` of the next page, which is also `next_start_index`. A single element that is too long is cut, and says so;',
  '  in JSON only lines of files and diffs are, and what names a path or a command stays whole.',
  '  What a call has done is not done again for a next page: there, `start_index` goes with `dry_run`.',
  '- `checkpoint`, `a` and `b` take an id, a unique prefix of one, a tag, a label or `HEAD`. Paths are relative to the root of the protected directory,',
  '  or absolute. Started in a subdirectory, `snapshots_rollback` without `paths` stays inside of it, and says so.',
  '- The inside of `.git` is counted, not listed. Contents of files that `exclude.keep` names (`.env`) are not shown unless `include_kept` is set;',
  '  snapshots hold them, and going back brings them back.',
  '- A failed call has `isError`. Its text begins with `NOTHING WAS EXECUTED`, or with `NOT COMPLETED` where a change of files may have begun',
  '  (which the next call then completes or takes back), and ends with `Next:` and what to do. The code of [errors.md](errors.md) is in',
  '  `_meta["savepoint/error"]`. A parameter that a tool does not have is refused, with the one that was meant.',
  '- Changes are done one after the other; looking does not wait for them. A request that is cancelled stops at a safe point.',
  '- The server ends when its input does, after everything is answered; SIGTERM stops it at a safe point.',
  '',
  '## Tools',
  '',
  ...tools.flatMap(row => toolSection(describeTool(row))),
  '## Resources',
  '',
  '`savepoint://snapshots/{checkpoint}` is what `snapshots_show` answers, `savepoint://runs/{run}` what `commands_list` does, as JSON; both take',
  '`?start_index=N&max_length=N`. `savepoint://events` is the log of everything that happened, newest first, with the parameters of the operation [events](api.md#events):',
  '`savepoint://events?kind=file&kind=run&since=1h&limit=20&cursor=…`, where `next` of a page is the cursor of the following one. All snapshots and runs are listed, a hundred per page.',
]

function toolSection(tool: ReturnType<typeof describeTool>): string[] {
  const { properties = {}, required = [] } = tool.inputSchema as unknown as {
    properties?: Record<string, Property>
    required?: string[]
  }
  const own = Object.entries(properties).filter(([name]) => !PAGED.includes(name))
  const pages = PAGED.every(name => name in properties) ? ['In pages.'] : []
  const { readOnlyHint, destructiveHint, idempotentHint } = tool.annotations
  const effect = readOnlyHint
    ? 'Only looks.'
    : destructiveHint
      ? 'Changes files or history.'
      : 'Adds, and takes nothing away.'
  const twice = !readOnlyHint && idempotentHint ? ['Twice is as once.'] : []
  return [
    `### ${tool.name}`,
    '',
    `${tool.description} ${[effect, ...twice, ...pages].join(' ')}`,
    '',
    ...own.map(([name, property]) => parameterLine(name, property, required.includes(name))),
    ...(own.length > 0 ? [''] : []),
  ]
}

function parameterLine(
  name: string,
  { type, items, default: value, description }: Property,
  isRequired: boolean,
): string {
  const kind = type === 'array' ? `${items?.type}[]` : type
  const marks = [
    kind,
    ...(isRequired ? ['required'] : []),
    ...(value === undefined ? [] : [`default ${JSON.stringify(value)}`]),
  ]
  return `- \`${name}\` (${marks.join(', ')})${description ? `: ${description}` : ''}`
}
