/** Every operation of the table is called for real, and answers what its schema says. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Call, Operation } from '../src/api/operation.ts'
import { checkInput, findOperation, inputSchema, operations, outputSchema } from '../src/api/table.ts'
import type { Savepoint } from '../src/index.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeAll(async () => {
  space = new Workspace()
  space.write('a', 'one\n')
  savepoint = await space.open()
  await savepoint.snapshot({ label: 'first' })
  await savepoint.run({ command: ['sh', '-c', 'echo two > a; echo new > b; false'] })
})
afterAll(() => space.remove())

async function call(name: string, input: Record<string, unknown> = {}): Promise<unknown> {
  const operation = findOperation(name)
  const answer = await operation.handler(
    savepoint,
    checkInput(operation, input),
    name === 'subscribe' ? left : undefined,
  )
  // Strict: what the schema does not name must not be there.
  expect(strictly(operation).parse(JSON.parse(JSON.stringify(answer)))).toEqual(JSON.parse(JSON.stringify(answer)))
  return answer
}

/** Nobody listens any more. */
const left: Call = { send: () => {}, signal: AbortSignal.abort(), outlive: () => {} }

/** zod drops unknown keys of an object: equality with the answer then shows them. */
const strictly = ({ output }: Operation) => output

/** In this order: each finds what those before it left. */
const calls: [name: string, input: Record<string, unknown>, has: Record<string, unknown> | unknown[] | null][] = [
  ['status', {}, { snapshots: 3 }],
  ['snapshots', { limit: 1 }, [{ type: 'final', head: true }]],
  ['log', {}, [{}, {}, { label: 'first' }]],
  ['head', {}, { type: 'final' }],
  ['branches', {}, [{ leaf: true }]],
  ['show', { snapshot: 'HEAD' }, { changes: [{ path: 'a' }, { path: 'b' }] }],
  ['read', { snapshot: 'first', path: 'a' }, { content: 'one\n', encoding: 'utf-8' }],
  ['diff', { from: 'first', to: 'HEAD', paths: ['b'] }, { changes: [{ kind: 'added', path: 'b' }] }],
  [
    'patch',
    { from: 'first', to: 'HEAD', paths: ['a'], start: 5, limit: 2 },
    { files: 1, lines: ['-one', '+two'], next: null },
  ],
  ['changes', {}, { changes: [] }],
  [
    'history',
    { path: 'a' },
    { path: 'a', versions: [{ status: 'new' }, { status: 'unchanged' }, { status: 'modified' }] },
  ],
  ['coverage', { path: 'a' }, { covered: true }],
  ['why', { path: 'b' }, { path: 'b', causes: [{ outcome: 'changed' }] }],
  ['trace', { failed: true }, { commands: [{ exit_code: 1 }] }],
  ['events', { limit: 2 }, { events: [{ kind: 'run' }, { kind: 'operation' }], next: expect.any(String) }],
  ['events', { kind: ['all'] }, { next: null }],
  ['runs', {}, [{ exit_code: 1 }]],
  ['operations', {}, [{ kind: 'run', state: 'done' }]],
  ['tag', { name: 'good', snapshot: 'first' }, { kind: 'tag' }],
  ['tags', {}, [{ name: 'good' }]],
  ['tag', { name: 'good', delete: true }, { kind: 'tag' }],
  ['rollback', { snapshot: 'first', dry_run: true }, { dry_run: true, files: { deleted: 1, replaced: 1 } }],
  ['rollback', { snapshot: 'first' }, { dry_run: false, files: { deleted: 1, replaced: 1 } }],
  ['undo', { dry_run: true }, { dry_run: true }],
  ['undo', {}, { operation: { kind: 'rollback' } }],
  ['redo', {}, { operation: { kind: 'rollback' } }],
  ['revert', { path: 'a', from: 'HEAD', dry_run: true }, { dry_run: true }],
  ['snapshot', { label: 'second' }, { label: 'second', head: true }],
  ['snapshot', { label: 'third' }, { label: 'third' }],
  ['compact', { snapshots: ['second', 'third'] }, { type: 'manual' }],
  ['snapshot', { label: 'fourth' }, { label: 'fourth' }],
  ['snapshot', { label: 'fifth' }, { label: 'fifth' }],
  ['delete', { snapshots: ['fourth'] }, { kind: 'delete' }],
  ['prune', { keep: 100, dry_run: true }, { dry_run: true }],
  ['exec', { cmd: 'echo three > a' }, { exit: 0, signal: null, counts: { modified: 1 } }],
  ['ps', {}, []],
  ['gc', {}, { forgotten_snapshots: 0 }],
  ['verify', {}, { ok: true }],
  ['subscribe', {}, null],
]
/** These need processes of their own: test/api-commands.test.ts. */
const elsewhere = ['spawn', 'kill']

describe.sequential('each operation answers what its schema says', () => {
  it.each(calls)('%s %j', async (name, input, has) => {
    const answer = await call(name, input)
    if (Array.isArray(has)) expect(answer).toHaveLength(has.length)
    if (has === null) expect(answer).toBeNull()
    else expect(answer).toMatchObject(has)
  })
})

it('all of them are tried', () => {
  const tried = new Set([...calls.map(([name]) => name), ...elsewhere])
  expect(operations.map(({ name }) => name).filter(name => !tried.has(name))).toEqual([])
})

it('runs and operations are told newest first', async () => {
  const { run } = (await call('exec', { cmd: 'echo newest > a' })) as { run: string }
  await call('tag', { name: 'newest' })
  const runs = (await call('runs')) as { id: string; started_at: string }[]
  expect(runs.length).toBeGreaterThan(1)
  expect(runs[0]!.id).toBe(run)
  const operations = (await call('operations')) as { kind: string; summary: string }[]
  expect(operations.slice(0, 2)).toMatchObject([
    { kind: 'tag' },
    { kind: 'run', summary: expect.stringContaining(run) },
  ])
})

it('whoever serves does himself only what the timeline alone answers', () => {
  const momentary = operations.filter(({ effect, isLong }) => effect === 'read' && !isLong).map(({ name }) => name)
  expect(momentary).toEqual(['snapshots', 'log', 'head', 'branches', 'runs', 'operations', 'tags', 'subscribe'])
})

it('names are told apart', () => {
  const names = operations.flatMap(({ name, aliases = [] }) => [name, ...aliases])
  expect(new Set(names).size).toBe(names.length)
  expect(findOperation('checkout').name).toBe('rollback')
})

it.each([
  ['rollback', { snapshot: 'x', dryRun: true }, 'it has no parameter "dryRun"', 'Did you mean "dry_run"?'],
  ['head', { ref: 'x' }, 'it has no parameter "ref"', 'head takes none'],
  ['rollback', {}, '"snapshot"', undefined],
  ['events', { limit: 0 }, '"limit" does not take 0', 'It takes a whole number from 1 to 1000'],
  ['snapshots', { limit: -1 }, '"limit" does not take -1', 'It takes a whole number from 1 on'],
  ['events', { kind: ['x'] }, '"kind"', /^It takes a list: file, snapshot, operation, run, command, all/],
  ['compact', { snapshots: ['x'] }, '"snapshots" does not take ["x"]', 'It takes a list of texts, 2 or more'],
  ['exec', { cmd: 'echo a\0b' }, '"cmd" has a null byte in it', /^No name, path or argument/],
  ['diff', { paths: ['a', 'b\0'] }, '"paths" has a null byte in it', undefined],
  ['events', { kind: ['files'] }, '"kind" does not take "files"', 'Did you mean "file"?'],
  ['events', 'text', '', undefined],
])('%s %j is refused', (name, input, message, hint) => {
  const operation = findOperation(name)
  expect(() => checkInput(operation, input)).toThrow(
    expect.objectContaining({
      code: 'usage',
      message: expect.stringContaining(message),
      ...(hint ? { hint: expect.stringMatching(hint) } : {}),
    }),
  )
})

it.each([
  ['undo', {}],
  ['rollback', { snapshot: 'first', dry_run: true }],
])('%s does not keep a run going that it starts again', (name, input) =>
  expect(call(name, { ...input, keep_running: true, restart: true })).rejects.toMatchObject({
    code: 'usage',
    message: `Cannot ${name}: a run cannot both go on and be started again`,
  }),
)

it('the target itself is a directory, and is not said not to be there', () =>
  expect(call('read', { path: '.' })).rejects.toThrow(/^Cannot read \. in snap_\w+: it is a dir$/))

it('an unknown operation gets the one that was meant', () =>
  expect(() => findOperation('rolback')).toThrow(expect.objectContaining({ hint: 'Did you mean "rollback"?' })))

it('schemas say that nothing else is taken', () => {
  for (const operation of operations) {
    expect(inputSchema(operation)).toMatchObject({ type: 'object', additionalProperties: false })
    expect(JSON.stringify(outputSchema(operation)).length).toBeGreaterThan(20)
  }
})

describe('what may be secret is not shown unasked', () => {
  let secret: Workspace
  let guarded: Savepoint
  const ask = async (name: string, input: Record<string, unknown>) => {
    const operation = findOperation(name)
    return (await operation.handler(guarded, checkInput(operation, input))) as Record<string, unknown>
  }
  beforeAll(async () => {
    secret = new Workspace()
    secret.write('.env', 'KEY=1\n')
    secret.write('sub/.env.local', 'KEY=1\n')
    secret.write('plain', 'p\n')
    guarded = await secret.open()
    await guarded.snapshot({ label: 'before' })
    secret.sh('echo KEY=2 > .env; mv sub/.env.local sub/moved; echo q > plain')
  })
  afterAll(() => secret.remove())

  it('by a patch, renames included', async () => {
    const patch = await ask('patch', {})
    expect(patch).toMatchObject({ files: 3, kept: ['.env', 'sub/moved'] })
    expect(JSON.stringify(patch.lines)).toContain('+q')
    expect(JSON.stringify(patch.lines)).not.toContain('KEY')
    const whole = await ask('patch', { kept: true })
    expect(whole).toMatchObject({ kept: [] })
    expect(whole.lines).toContain('+KEY=2')
  })

  it('by reading it', async () => {
    const wanted = { snapshot: 'before', path: '.env' }
    await expect(ask('read', wanted)).rejects.toThrow('it may be secret')
    expect(await ask('read', { ...wanted, kept: true })).toMatchObject({ content: 'KEY=1\n' })
  })

  it('and a patch comes in pages that are the whole together', async () => {
    const whole = (await ask('patch', { kept: true })).lines as string[]
    const lines: string[] = []
    for (let start: number | null = 0; start !== null; ) {
      const page = await ask('patch', { kept: true, start, limit: 4 })
      lines.push(...(page.lines as string[]))
      start = page.next as number | null
    }
    expect(lines).toEqual(whole)
    expect(lines.length).toBeGreaterThan(8)
  })
})

it('a snapshot has its tags, and is HEAD, in whichever answer it stands', async () => {
  const other = new Workspace()
  const mine = await other.open()
  const ask = (name: string, input: Record<string, unknown> = {}) => {
    const operation = findOperation(name)
    return operation.handler(mine, checkInput(operation, input), undefined)
  }
  for (const content of ['one', 'two', 'three']) {
    other.write('a', content)
    await mine.snapshot({ label: content })
  }
  mine.tag('good', 'three')
  const head = await ask('head')
  expect(head).toMatchObject({ tags: ['good'], head: true })
  expect(await ask('status')).toMatchObject({ head })
  expect(await ask('coverage', { path: 'a' })).toMatchObject({ latest: head })
  const made = await ask('compact', { snapshots: ['two', 'three'], label: 'both' })
  expect(made).toMatchObject({ label: 'both', tags: ['good'], head: true })
  expect(made).toEqual(await ask('head'))
  other.remove()
})
