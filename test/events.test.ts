/** What happened to files stands in SQL, with whom it was as far as that is known, and so does what led to which snapshot. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LogEvent, Savepoint } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { gated } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

/** The queries that the document gives. */
const format = readFileSync(fileURLToPath(new URL('../docs/format.md', import.meta.url)), 'utf8')
const documented = format.match(/^```sql changes-of-a-snapshot\n([\s\S]*?)^```$/m)![1]!
const documentedLog = format.match(/^```sql log-of-events\n([\s\S]*?)^```$/m)![1]!

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('a', 'a1\n')
  space.write('b', 'b1\n')
  space.write('dir/c', 'c1\n')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const run = (script: string) => savepoint.run({ command: ['sh', '-c', script] })
const databaseFile = () => join(space.home, 'timelines', savepoint.timeline, 'timeline.sqlite')

function query(sql: string, ...values: (string | number)[]): Record<string, unknown>[] {
  const database = new DatabaseSync(databaseFile())
  try {
    return database.prepare(sql).all(...values)
  } finally {
    database.close()
  }
}

const text = (value: unknown) => (value === null ? null : Buffer.from(value as Uint8Array).toString())
/** `kind path → to`, as the documented query answers it. */
const changesOf = (snapshot: string): string[] =>
  query(documented, snapshot).map(({ kind, path, to_path }) =>
    [kind, text(path), ...(to_path === null ? [] : ['→', text(to_path)])].join(' '),
  )
const files = (): Extract<LogEvent, { kind: 'file' }>[] =>
  savepoint.events().events.filter(event => event.kind === 'file')

describe('the changes of a snapshot are one query', () => {
  it('of a run: created, modified, deleted, renamed, with size, process and command', async () => {
    const { after } = await run('echo new > made; echo more >> a; rm b; mv dir/c dir/d')
    expect(changesOf(after!.id)).toEqual(['created made', 'modified a', 'deleted b', 'renamed dir/c → dir/d'])
    const [made, , deleted] = query(documented, after!.id)
    expect(made).toMatchObject({ size: 4 })
    expect(made!.pid).toBeGreaterThan(0)
    expect(text(deleted!.argv)).toBe('rm\0b')
  })

  it('of what was done outside of a run: found by the snapshot, without a process', async () => {
    await savepoint.snapshot()
    space.sh('echo a2 > a; rm b; mkdir -p made/deep; echo 1 > made/one; echo 2 > made/deep/two; chmod 600 dir/c')
    const { id } = await savepoint.snapshot()
    expect(changesOf(id).sort()).toEqual(['created made', 'deleted b', 'modified a', 'modified dir/c'])
    expect(files().map(({ event }) => [event.run, event.pid, event.exec])).toEqual(Array(4).fill(['', 0, 0]))
    expect(query('SELECT origin, files, unlisted FROM snapshot_events WHERE snapshot = ?', id)).toEqual([
      { origin: 'manual', files: 5, unlisted: 0 },
    ])
    expect((await savepoint.snapshot()).id).not.toBe(id)
    expect(changesOf(savepoint.head().id)).toEqual([])
  })

  /** Held at `rm -r` until its snapshot is there. */
  const guarded = () => savepoint.snapshots().find(({ type }) => type === 'guard')!

  it('a process that changes the same file after a snapshot on the way is noted again', async () => {
    // The shell itself writes both times: one execution.
    const { before, after } = await run('echo 2 >> a; rm -r dir; echo 3 >> a')
    expect(changesOf(before!.id)).toEqual([])
    expect(changesOf(guarded().id)).toEqual(['modified a'])
    expect(changesOf(after!.id)).toEqual(['deleted dir/c', 'deleted dir', 'modified a'])
  })

  it('a file that is written through a descriptor from before the snapshot is found', async () => {
    const { after } = await run('exec 3>>a; echo 2 >&3; rm -r dir; echo 3 >&3')
    expect(changesOf(guarded().id)).toEqual(['modified a'])
    expect(changesOf(after!.id)).toEqual(['deleted dir/c', 'deleted dir', 'modified a'])
  })

  it('who makes a file and goes on writing it is noted once', async () => {
    const { after } = await run('echo 1 > made; echo 2 >> made; echo 3 >> made; mkdir there; rm a')
    expect(changesOf(after!.id)).toEqual(['created made', 'created there', 'deleted a'])
  })

  it('mv over a file, which is tried without replacing it first, is one event; what is renamed again is another', async () => {
    const { after } = await run('mv a b')
    expect(changesOf(after!.id)).toEqual(['renamed a → b'])
    expect(savepoint.why('b').causes.map(({ event }) => event.kind)).toEqual(['renamed'])
    const script = 'import os\nfor i in range(2):\n  os.rename("b", "dir/c")\n  if i == 0: open("b", "w").close()'
    const again = await savepoint.run({ command: ['python3', '-c', script] })
    expect(changesOf(again.after!.id)).toEqual(['renamed b → dir/c', 'created b', 'renamed b → dir/c'])
  })

  it('of snapshots that were compacted into one: all of them', async () => {
    await savepoint.snapshot()
    space.write('a', 'a2\n')
    const first = await savepoint.snapshot()
    space.write('b', 'b2\n')
    const second = await savepoint.snapshot()
    const { snapshot } = await savepoint.compact([first.id, second.id])
    expect(changesOf(snapshot.id)).toEqual(['modified a', 'modified b'])
  })

  it('moves into the target and out of it are no renames', async () => {
    writeFileSync(join(space.base, 'outside'), 'x')
    const { after } = await run('mv ../outside in; mv a ../gone; ln b linked')
    expect(changesOf(after!.id)).toEqual(['created  → in', 'deleted a', 'created b → linked'])
  })
})

describe('restored', () => {
  it('rollback, revert and undo say what they changed, and it is no change of the next snapshot', async () => {
    const first = await savepoint.snapshot()
    space.sh('echo a2 > a; rm b; mkdir more empty; touch more/x new')
    await savepoint.rollback(first.id)
    const restored = files().filter(({ event }) => event.kind === 'restored')
    expect(restored.map(({ event }) => [event.path, event.size, event.existed, event.directory]).sort()).toEqual([
      ['a', 3, true, false],
      ['b', 3, true, false],
      ['empty', undefined, false, true],
      ['more', undefined, false, true],
      ['new', undefined, false, false],
    ])
    const lines = runCli(space, ['events', '--kind', 'file', '--limit', '5']).stdout
    expect(
      lines
        .match(/(restored|removed) .*/g)!
        .map(line => line.replace(/ +/g, ' '))
        .sort(),
    ).toEqual(['removed empty/', 'removed more/', 'removed new', 'restored a 3 B', 'restored b 3 B'])
    expect(restored[0]!.event.pid).toBe(process.pid)
    space.write('dir/c', 'c2\n')
    expect(changesOf((await savepoint.snapshot()).id)).toEqual(['modified dir/c'])
    await savepoint.undo()
    expect(files().filter(({ event }) => event.kind === 'restored').length).toBe(10)
  })

  it('a revert of one path is a change against the snapshot before', async () => {
    const first = await savepoint.snapshot()
    space.write('a', 'a2\n')
    await savepoint.snapshot()
    await savepoint.revert('a', { from: first.id })
    expect(changesOf((await savepoint.snapshot()).id)).toEqual(['restored a'])
  })
})

describe('savepoint events', () => {
  it('lists them newest first, with the snapshots between', async () => {
    const { run: made } = await run('rm b')
    space.write('a', 'a2\n')
    await savepoint.snapshot()
    const shape = (event: LogEvent) =>
      event.kind === 'file'
        ? `${event.action} ${event.event.path}`
        : event.kind === 'snapshot'
          ? `snapshot ${event.type}`
          : `${event.kind} ${event.action}`
    expect(savepoint.events().events.map(shape)).toEqual([
      'snapshot manual',
      'modified a',
      'run ended',
      'operation run',
      'snapshot final',
      'deleted b',
      'snapshot pre-run',
      'run started',
    ])
    expect(savepoint.events({ run: made!.id }).events.map(shape)).toEqual([
      'run ended',
      'operation run',
      'snapshot final',
      'deleted b',
      'snapshot pre-run',
      'run started',
    ])
    expect(savepoint.events({ limit: 2 }).events.map(shape)).toEqual(['snapshot manual', 'modified a'])
    const { stdout } = runCli(space, ['events', '--run', made!.id])
    expect(stdout).toMatch(/snapshot +snap_\w+ final, 1 changed path\n.*deleted +b by rm b\n/)
    const [, second] = JSON.parse(runCli(space, ['events', '--json', '-n', '2']).stdout).events
    expect(second).toMatchObject({
      kind: 'file',
      action: 'modified',
      path: 'a',
      run: null,
      pid: null,
      exec: null,
      size: 3,
    })
    expect(runCli(space, ['events', '--run', 'run_aaaaaaaa']).status).toBe(12)
    const listed = savepoint.events({ kind: ['all'], reverse: true }).events
    expect(query(documentedLog).map(({ kind, what }) => `${kind} ${what}`)).toEqual(
      listed.map(({ kind, action }) => `${kind} ${action}`),
    )
  })

  gated(canDropPrivilege, 'setpriv', 'are the same for an ordinary user', async () => {
    const { error } = await runAsUser(space, [['run', { command: ['sh', '-c', 'rm b; echo x > made'] }]])
    expect(error).toBeUndefined()
    expect(files().map(({ event }) => `${event.kind} ${event.path}`)).toEqual(['created made', 'deleted b'])
  })
})

describe('a timeline of an older version', () => {
  it('gets the columns when it is opened, and its old events their kinds', async () => {
    await run('echo x > made; rm b; mv a a2; chmod 600 dir/c')
    const kinds = () => query('SELECT kind FROM fs_events ORDER BY id').map(({ kind }) => kind)
    const before = kinds()
    expect(before).toEqual(['created', 'deleted', 'renamed', 'modified'])
    const told = () => savepoint.events({ kind: ['all'] }).events.map(event => [event.kind, event.action, event.at])
    const log = told()
    // As it was.
    savepoint.close()
    const database = new DatabaseSync(databaseFile())
    database.exec(`
      DROP TABLE snapshot_events; ALTER TABLE fs_events DROP COLUMN kind; ALTER TABLE fs_events DROP COLUMN size;
      DROP TABLE event_log; ALTER TABLE snapshots DROP COLUMN turn; ALTER TABLE fs_events DROP COLUMN emptied;
      DELETE FROM meta WHERE key IN ('events_from', 'event_log')`)
    database.close()
    savepoint = await space.open()
    // By their times, which here are all that is known.
    expect(told().toSorted()).toEqual(log.toSorted())
    expect(told().map(([, , at]) => at)).toEqual(
      told()
        .map(([, , at]) => at as number)
        .toSorted((a, b) => b - a),
    )
    expect(kinds()).toEqual(before)
    expect(files().map(({ event }) => event.kind)).toEqual(before.toReversed())
    space.write('dir/c', 'c2\n')
    const { id } = await savepoint.snapshot()
    expect(changesOf(id)).toEqual(['modified dir/c'])
  })

  it('the kinds are the same in SQL and here', async () => {
    await savepoint.snapshot()
    const database = new DatabaseSync(databaseFile())
    const insert = database.prepare(
      "INSERT INTO fs_events (run, at, op, path, to_path, exec, pid, existed, directory) VALUES ('', 0, ?, ?, ?, 0, 0, ?, 0)",
    )
    const ops = 'write create delete rename exchange link attributes truncate inherited restore'.split(' ')
    const [path, to] = [Buffer.from('p'), Buffer.from('t')]
    for (const op of ops)
      for (const existed of [0, 1])
        for (const [from, into] of [
          [path, null],
          [null, to],
          [path, to],
        ] as const)
          insert.run(op, from, into, existed)
    database.close()
    const inSql = query('SELECT kind FROM fs_events ORDER BY id DESC').map(({ kind }) => kind)
    expect(files().map(({ event }) => event.kind)).toEqual(inSql)
    expect(new Set(inSql)).toEqual(new Set(['created', 'modified', 'deleted', 'renamed', 'restored']))
  })
})

it('a timeline that was damaged and saved notes events from there on, and relies on no trace that is gone', async () => {
  await run('echo 1 > made; echo 2 > more; rm b')
  const id = savepoint.runs()[0]!.id
  savepoint.close()
  const [file, bytes] = [databaseFile(), readFileSync(databaseFile())]
  const tags = query("SELECT rootpage FROM sqlite_master WHERE name = 'tags'")[0]!.rootpage as number
  writeFileSync(file, bytes.fill(0, (tags - 1) * 4096, tags * 4096))
  savepoint = await space.open({ repair: true })
  await savepoint.verify({ repair: true })
  expect(files()).toEqual([])
  expect(query('SELECT key FROM meta WHERE key = ?', `trace:${id}`)).toEqual([])
  space.write('a', 'a2\n')
  expect(changesOf((await savepoint.snapshot()).id)).toEqual(['modified a'])
})
