/** Every MCP tool and resource, called by the official client; what is wrong is said so that a model cannot mistake it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { closeMcpClients, connectMcp, type McpClient } from './support/mcp-client.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let mcp: McpClient
beforeAll(async () => {
  space = new Workspace()
  space.write('a', 'one\n')
  space.write('.env', 'KEY=1\n')
  mcp = await connectMcp(space)
})
afterAll(async () => {
  await closeMcpClients()
  space.remove()
})

const named = [
  'snapshots_list snapshots_create snapshots_changes snapshots_revert snapshots_history snapshots_delete snapshots_compact',
  'snapshots_rollback snapshots_diff snapshots_show snapshots_log snapshots_tag snapshots_undo commands_list why_changed coverage',
]
  .join(' ')
  .split(' ')

describe('tools', () => {
  it('are those that were promised, with hints that follow from what they do', async () => {
    const { tools } = await mcp.client.listTools()
    expect(tools.map(({ name }) => name).toSorted()).toEqual(named.toSorted())
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]))
    expect(hints.snapshots_list).toMatchObject({ readOnlyHint: true, destructiveHint: false, idempotentHint: true })
    expect(hints.snapshots_create).toMatchObject({ readOnlyHint: false, destructiveHint: false, idempotentHint: false })
    expect(hints.snapshots_rollback).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: true })
    expect(hints.snapshots_undo).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: false })
    // It may take a name away.
    expect(hints.snapshots_tag).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: true })
    const properties = (name: string) =>
      Object.keys(tools.find(tool => tool.name === name)!.inputSchema.properties as object)
    expect(properties('snapshots_list')).toEqual(['include_changes', 'start_index', 'max_length', 'format'])
    expect(properties('snapshots_create')).toEqual(['name'])
    for (const { inputSchema, outputSchema, description } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
      expect(outputSchema).toMatchObject({ type: 'object' })
      expect(description!.length).toBeGreaterThan(60)
      // What clients that know a part of JSON Schema only stumble over.
      expect(JSON.stringify([inputSchema, outputSchema])).not.toMatch(/"type":\[|\$ref|\$schema|9007199254740991/)
    }
    expect(mcp.client.getServerVersion()).toMatchObject({ name: 'savepoint' })
    expect(mcp.client.getInstructions()).toContain('snapshots_rollback')
  })

  it('say what to do where nothing is protected yet', async () => {
    const answer = await mcp.call('snapshots_changes')
    expect(answer.isError).toBe(true)
    expect(answer.text).toMatch(
      /^NOTHING WAS EXECUTED: [\s\S]*\nNext: snapshots_create begins to protect this directory$/,
    )
    expect((await mcp.client.listResources()).resources).toEqual([])
  })
})

/** In this order: each finds what those before it left. `text` is a part of the answer, `data` of its structured form. */
const steps: [title: string, tool: string, input: Record<string, unknown>, text: RegExp, data: object, sh?: string][] =
  [
    ['first', 'snapshots_create', { name: 'first' }, /^Took snap_\w+ {2}manual/, { snapshot: { label: 'first' } }],
    ['nothing', 'snapshots_changes', {}, /^Nothing changed since snap_/, { changes: [], git: 0 }],
    [
      'changed',
      'snapshots_changes',
      {},
      /^3 changes since [\s\S]*\nM \.env \(6 B\)\nM a \(4 B\)\nA b \(4 B\)\n/,
      { changes: [{ path: '.env' }, { kind: 'modified', path: 'a' }, { kind: 'added', size_after: 4 }] },
      'echo two > a; echo new > b; echo KEY=2 > .env',
    ],
    [
      'as a patch, without secrets',
      'snapshots_diff',
      {},
      /Contents not shown, because they may be secret: \.env\ndiff --git a\/a b\/a[\s\S]*\n-one\n\+two\n/,
      { files: 3, kept: ['.env'] },
    ],
    ['of one path', 'snapshots_diff', { path: 'b' }, /: 1 changed path\n[\s\S]*\+new$/, { files: 1 }],
    ['with secrets', 'snapshots_diff', { path: '.env', include_kept: true }, /-KEY=1\n\+KEY=2/, { kept: [] }],
    ['second', 'snapshots_create', { name: 'second' }, /"second" {2}\+1 ~2/, { snapshot: { stats: { added: 1 } } }],
    ['between two', 'snapshots_diff', { a: 'first', b: 'second', path: 'a' }, /\+two/, { lines: expect.any(Array) }],
    ['the other way', 'snapshots_diff', { b: 'first', path: 'a' }, /\+one/, {}],
    [
      'list',
      'snapshots_list',
      {},
      /^2 snapshots, newest first\nsnap_\w+ {2}manual/,
      { total: 2, next_start_index: null },
    ],
    ['list as JSON', 'snapshots_list', { format: 'json' }, /^\{"head":"snap_/, { snapshots: [{}, {}] }],
    [
      'list with changes',
      'snapshots_list',
      { include_changes: true },
      /\n {4}M a \(4 B\)\n {4}A b \(4 B\)\n/,
      { snapshots: [{ label: 'second', changes: [{}, {}, {}], more_changes: 0 }, { changes: [] }] },
    ],
    ['show', 'snapshots_show', { checkpoint: 'second' }, /3 changes since/, { snapshot: { label: 'second' } }],
    ['show HEAD', 'snapshots_show', {}, /HEAD/, { changes: [{}, {}, {}] }],
    ['a file', 'snapshots_show', { checkpoint: 'first', path: 'a' }, /^a in snap_\w+: 4 B\none$/, { lines: ['one'] }],
    ['history', 'snapshots_history', { path: 'a' }, /^a: 2 versions/, { versions: [{ status: 'new' }, { size: 4 }] }],
    [
      'coverage',
      'coverage',
      { path: 'b' },
      /^b is protected; its present content is in a snapshot\nIn 1 snapshot, the newest with this content is snap_/,
      { covered: true },
    ],
    ['no coverage', 'coverage', { path: 'sock' }, /^sock is not protected/, { covered: false }],
    ['tag', 'snapshots_tag', { name: 'good', checkpoint: 'first' }, /^Tag good is snap_/, { changed: true }],
    ['tag again', 'snapshots_tag', { name: 'good', checkpoint: 'first' }, /already$/, { changed: false }],
    ['log', 'snapshots_log', {}, /^2 snapshots, 1 branch; HEAD is snap_/, { tags: [{ name: 'good' }], branches: [{}] }],
    [
      'what a rollback would do',
      'snapshots_rollback',
      { checkpoint: 'good', dry_run: true },
      /^Would roll back to snap_\w+: 1 deleted, 2 replaced[\s\S]*\ndelete b\n[\s\S]*Nothing was changed/,
      { dry_run: true, operation: null },
    ],
    [
      'a rollback of one path',
      'snapshots_rollback',
      { checkpoint: 'good', paths: ['a'] },
      /^Rolled back to snap_\w+: 1 replaced\nreplace a\nTo take it back: snapshots_undo/,
      { changes: [{ action: 'replace', path: 'a' }] },
    ],
    [
      'coverage by an older one',
      'coverage',
      { path: 'a' },
      /its present content is in a snapshot\nIn \d snapshots, the newest with this content is snap_/,
      { current: true },
    ],
    ['what an undo would do', 'snapshots_undo', { dry_run: true }, /^Would undo: /, { undone: { kind: 'rollback' } }],
    ['undo', 'snapshots_undo', {}, /^Undone: /, { undone: { kind: 'rollback' }, restore: { dry_run: false } }],
    [
      'a rollback',
      'snapshots_rollback',
      { checkpoint: 'first' },
      /^Rolled back/,
      { files: { deleted: 1, replaced: 2 } },
    ],
    ['undo it', 'snapshots_undo', {}, /^Undone: /, { restore: { files: { created: 1 } } }],
    ['revert', 'snapshots_revert', { path: 'a', checkpoint: 'first' }, /^Brought a back/, { files: { replaced: 1 } }],
    ['two', 'snapshots_create', { name: 'x1' }, /"x1"/, {}],
    ['three', 'snapshots_create', { name: 'x2' }, /"x2"/, {}],
    [
      'compact',
      'snapshots_compact',
      { checkpoints: ['x1', 'x2'], name: 'x' },
      /^Made of 2/,
      { snapshot: { label: 'x' } },
    ],
    ['four', 'snapshots_create', {}, /^Took/, {}],
    [
      'delete',
      'snapshots_delete',
      { checkpoint: 'x' },
      /To take it back: snapshots_undo$/,
      { operation: { kind: 'delete' } },
    ],
    ['untag', 'snapshots_tag', { name: 'good', delete: true }, /^There is no tag good/, { snapshot: null }],
    [
      'coverage where snapshots are off',
      'coverage',
      { path: 'out2' },
      /^out2 is not protected \(snapshots are turned off by the configuration\)\nNo snapshot has it$/,
      { covered: false, reason: 'disabled' },
      "touch out2; printf 'snapshots:\\n  disabled: true\\n' > savepoint.yaml",
    ],
    [
      'coverage of a directory',
      'coverage',
      { path: '.' },
      /^\. is protected but for what is left out; the rest of its present content is in no snapshot yet[\s\S]*\nSnapshots do not capture 1 path below it: out \(excluded\)\n/,
      { path: '.', left_out: { count: 1, paths: [{ path: 'out' }] }, up_to_date: false, current: false },
      'rm savepoint.yaml out2; printf out > .savepointignore; touch out',
    ],
  ]

describe.sequential('each does what it says', () => {
  it.each(steps)('%s: %s %j', async (_title, tool, input, text, data, script) => {
    if (script) space.sh(script)
    const answer = await mcp.call(tool, input)
    expect(answer.text).toMatch(text)
    expect(answer.isError).toBe(false)
    expect(answer.data).toMatchObject(data)
  })

  it('also of runs: the commands, and which of them changed a file', async () => {
    savepoint(space, ['run', '--', 'sh', '-c', 'echo three > a; touch c; false'])
    const commands = await mcp.call('commands_list')
    expect(commands.text).toMatch(/^run_\w+ \(exit 1\): \d+ commands?\n\$ sh -c [\s\S]*\(exit 1, /)
    expect(commands.data).toMatchObject({ run: { exit_code: 1 }, commands: [{ exit_code: 1 }, {}] })
    const failed = await mcp.call('commands_list', { failed: true, run: commands.data.run.id })
    expect(failed.data.commands).toHaveLength(1)
    const why = await mcp.call('why_changed', { path: 'c' })
    expect(why.text).toMatch(/^c: 1 change by traced commands[\s\S]*by \$ touch c {2}\(run_/)
    expect(why.data.causes).toMatchObject([{ outcome: 'changed', command: { line: 'touch c' } }])
  })

  it('and all of them were called', () => {
    const called = new Set([...steps.map(([, tool]) => tool), 'commands_list', 'why_changed'])
    expect(named.filter(name => !called.has(name))).toEqual([])
  })

  it('and the command line sees the same', () => {
    expect(savepointJson(space, ['operations']).map(({ kind }: { kind: string }) => kind)).toContain('compact')
    expect(space.read('a')).toBe('three\n')
  })
})

describe('a checkpoint', () => {
  it.each([
    ['an id', (id: string) => id],
    ['a prefix', (id: string) => id.slice(0, 9)],
    ['a prefix without snap_', (id: string) => id.slice(5, 10)],
    ['a label', () => 'first'],
    ['a tag', () => 'tagged'],
  ])('is %s', async (_what, nameOf) => {
    const { data } = await mcp.call('snapshots_show', { checkpoint: 'first' })
    await mcp.call('snapshots_tag', { name: 'tagged', checkpoint: 'first' })
    const answer = await mcp.call('snapshots_show', { checkpoint: nameOf(data.snapshot.id) })
    expect(answer.data.snapshot.id).toBe(data.snapshot.id)
  })
})

describe('what is wrong', () => {
  const wrong: [tool: string, input: Record<string, unknown>, why: RegExp, next: RegExp, code: string][] = [
    [
      'snapshots_rollback',
      { checkpoint: 'frist' },
      /Cannot find snapshot "frist"/,
      /Did you mean first\?/,
      'snapshot.unknown',
    ],
    ['snapshots_rollback', {}, /"checkpoint"/, /parameters/, 'usage'],
    [
      'snapshots_rollback',
      { checkpoint: 'first', dryRun: true },
      /no parameter "dryRun"/,
      /Did you mean "dry_run"\?/,
      'usage',
    ],
    ['snapshots_list', { start_index: -1 }, /"start_index"/, /parameters/, 'usage'],
    ['snapshots_list', { max_length: 1 }, /"max_length"/, /parameters/, 'usage'],
    ['snapshots_list', { format: 'xml' }, /"format"/, /parameters/, 'usage'],
    ['snapshots_show', { checkpoint: 'sn' }, /"sn"/, /at least 4|snapshots_list/, 'snapshot.'],
    ['snapshots_revert', { path: '../x' }, /outside the target/, /target is/, 'path.outside'],
    ['snapshots_history', { path: 'never' }, /never/, /./, 'path.unknown'],
    ['snapshots_show', { checkpoint: 'first', path: '.env' }, /may be secret/, /its owner agrees/, 'failed'],
    ['snapshots_tag', { name: 'nope', delete: true }, /nope/, /./, 'tag.unknown'],
    ['snapshots_tag', { name: 'nope', checkpoint: 'HEAD', delete: true }, /its name alone/, /which snapshot/, 'usage'],
    ['snapshots_delete', { checkpoint: 'HEAD' }, /HEAD|newest/, /./, 'snapshot.pinned'],
    ['snapshots_compact', { checkpoints: ['first'] }, /"checkpoints"/, /./, 'usage'],
    ['commands_list', { run: 'run_nobody00' }, /run_nobody00/, /./, 'run.unknown'],
  ]
  it.each(wrong)('%s %j', async (tool, input, why, next, code) => {
    const engine = await space.open()
    const before = engine.operations()
    const { isError, text, meta } = await mcp.call(tool, input)
    expect(isError).toBe(true)
    const lines = text.split('\n')
    expect(lines[0]).toMatch(/^NOTHING WAS EXECUTED: /)
    expect(lines[0]).toMatch(why)
    expect(lines.at(-1)).toMatch(/^Next: ./)
    expect(text).toMatch(next)
    expect((meta['savepoint/error'] as { code: string }).code).toContain(code)
    expect(engine.operations()).toEqual(before)
  })

  it('commands in hints are tools', async () => {
    const { text } = await mcp.call('snapshots_show', { checkpoint: 'zzzzzz' })
    expect(text).toContain('snapshots_list lists what there is')
  })

  it('a tool that does not exist is named, with the one that was meant', async () => {
    await expect(mcp.call('snapshot_list')).rejects.toThrow(/NOTHING WAS EXECUTED[\s\S]*Did you mean snapshots_list\?/)
  })
})

describe('resources', () => {
  const read = async (uri: string) =>
    JSON.parse(((await mcp.client.readResource({ uri })).contents[0] as { text: string }).text)

  it('are the log of events, snapshots and runs', async () => {
    const { resources } = await mcp.client.listResources()
    const kinds = new Set(resources.map(({ uri }) => uri.replace(/\w+$/, '')))
    expect([...kinds]).toEqual(['savepoint://', 'savepoint://snapshots/', 'savepoint://runs/'])
    for (const { uri } of resources.slice(1)) {
      const data = await read(uri)
      expect(uri).toContain((data.snapshot ?? data.run).id)
    }
    const { resourceTemplates } = await mcp.client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'savepoint://snapshots/{checkpoint}{?start_index,max_length}',
      'savepoint://runs/{run}{?start_index,max_length}',
      'savepoint://events{?kind*,run,since,limit,cursor,reverse}',
    ])
    await expect(mcp.client.listResources({ cursor: 'x' })).rejects.toThrow(/NOTHING WAS EXECUTED[\s\S]*nextCursor/)
  })

  it('the log of events is what the command line shows, in pages', async () => {
    const { events } = savepointJson(space, ['events', '--kind', 'operation,snapshot', '--limit', '4'])
    const first = await read('savepoint://events?kind=operation&kind=snapshot&limit=3')
    expect(first.events).toEqual(events.slice(0, 3))
    const second = await read(`savepoint://events?kind=operation&kind=snapshot&limit=1&cursor=${first.next}`)
    expect(second.events).toEqual(events.slice(3))
    expect((await read('savepoint://events')).events).toHaveLength(20)
    const wrong = read('savepoint://events?kind=fil')
    await expect(wrong).rejects.toThrow(/NOTHING WAS EXECUTED: Cannot call events: "kind" does not take "fil"/)
  })

  it('are found by label and in pages', async () => {
    const page = await read('savepoint://snapshots/first?start_index=7')
    expect(page).toMatchObject({ snapshot: { label: 'first' }, start_index: 7 })
    await expect(read('savepoint://snapshots/first?max_length=long')).rejects.toThrow(
      /"max_length" does not take "long"/,
    )
  })

  it.each(['savepoint://snapshots/nobody', 'savepoint://cats/1', 'file:///etc/passwd', 'savepoint://snapshots/%zz'])(
    '%s does not exist',
    async uri => {
      await expect(mcp.client.readResource({ uri })).rejects.toThrow(/nobody|not found/i)
    },
  )
})

it('a file with null bytes is not shown as text', async () => {
  space.write('binary', 'a\0b\n')
  await mcp.call('snapshots_create', { name: 'with a binary' })
  const { text, data } = await mcp.call('snapshots_show', { checkpoint: 'with a binary', path: 'binary' })
  expect(text).toMatch(/^binary in snap_\w+: 4 B, not text, and not shown$/)
  expect(data).toMatchObject({ file: { binary: true }, lines: [] })
})
