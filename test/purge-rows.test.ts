/** X3 for what a timeline says about its snapshots and operations: it is true after a purge, and does not name what is purged. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { startRun, untilLater, useRuns } from './support/background-run.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { runCli } from './support/cli.ts'
import { holdsBytes } from './support/raw-scan.ts'
import type { Workspace } from './support/workspace.ts'

// Nothing that a pattern of tracing.redact knows.
const SECRET = 'xq7-vulture-93'

let space: Workspace
useRuns(made => {
  space = made
  space.write('zebra', 'z1\n')
})

const cli = (...args: string[]) => runCli(space, args)
const run = (script: string) => expect(savepoint(space, ['run', '--', 'sh', '-c', script]).status).toBe(0)

/** Rows that speak of it, but for the purge itself, which says what it did. */
function rowsWith(text: string): string[] {
  const timelines = join(space.home, 'timelines')
  const [id] = readdirSync(timelines)
  const database = new DatabaseSync(join(timelines, id!, 'timeline.sqlite'), { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    const rows = tables.flatMap(({ name }) =>
      database
        .prepare(`SELECT * FROM ${name}`)
        .all()
        .map(
          row =>
            `${name} ${Object.values(row).map(value => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value))}`,
        ),
    )
    return rows.filter(row => row.includes(text) && !row.includes(',purge,'))
  } finally {
    database.close()
  }
}

describe('undo of an operation that changed what was purged since', () => {
  it('says so of a file that it wrote', () => {
    run(`echo z2 > zebra; echo b > b`)
    cli('purge', 'zebra', '--yes')
    const stays = 'Stay, because they were not captured: zebra (purged from history)\n'
    const id = savepointJson(space, ['runs'])[0].id
    for (const verb of [['undo', '--dry-run'], ['rollback', id, '--dry-run'], ['undo']])
      expect(cli(...verb).stdout).toContain(stays)
    expect([space.read('zebra'), space.read('b')]).toEqual(['z2\n', undefined])
  })

  it('says so of one that it made, and names the way to be rid of it', () => {
    run('echo s > secret; echo b > b')
    cli('purge', 'secret', '--yes')
    const { status, stdout } = cli('undo')
    expect([status, stdout]).toEqual([
      3,
      expect.stringContaining('secret: its content was purged from history since\n'),
    ])
    expect(space.read('secret')).toBe('s\n')
    const [, way] = /To remove what is purged, too: savepoint (rollback snap_\w+ -- secret)\n/.exec(stdout)!
    expect(cli(...way!.split(' ')).status).toBe(0)
    expect(space.read('secret')).toBeUndefined()
  })

  it('is silent about what it left alone', () => {
    run('echo b > b')
    cli('purge', 'zebra', '--yes')
    expect(cli('undo').stdout).not.toContain('zebra')
  })
})

it('counts, contents and labels of snapshots are those of what is left', () => {
  cli('snapshot', '--label', 'first')
  run(`echo 1234 > zebra; echo s > gone; rm gone; echo k > gone2; rm gone2`)
  const shown = (ref: string) => cli('show', ref).stdout
  const [kept] = savepointJson(space, ['snapshots']).filter(({ type }: { type: string }) => type === 'kept')
  expect(shown(kept.id)).toMatch(
    /label +2 destroyed files\n(.*\n)* {2}content {2}4 files, 9 B\n(.*\n)* {2}changes {2}2 added\n/,
  )
  cli('purge', 'gone', '--yes')
  expect(shown(kept.id)).toMatch(/label +gone2\n(.*\n)* {2}content {2}3 files, 7 B\n(.*\n)* {2}changes {2}1 added\n/)
  cli('purge', 'gone2', '--yes')
  expect(shown(kept.id)).toMatch(
    /label +\[purged\]\n(.*\n)* {2}content {2}2 files, 5 B\n(.*\n)* {2}changes {2}no changes\n/,
  )
  expect(shown('first')).toContain('content  2 files, 5 B')
  const { after } = savepointJson(space, ['runs'])[0]
  expect(shown(after)).toContain('changes  1 modified')
  cli('purge', 'zebra', '--yes')
  expect(shown('first')).toContain('content  1 file, 2 B')
  expect(shown(after)).toContain('changes  no changes')
})

describe('no row names it any more', () => {
  it('nor tells the commands that spoke of it, in operations of any kind and what they saved', () => {
    cli('snapshot', '--label', 'first')
    run(`echo ${SECRET} > zebra; echo b > b`)
    for (const verb of ['undo', 'redo']) cli(verb)
    cli('rollback', 'first', '--', 'zebra')
    for (const verb of ['undo', 'redo', 'undo']) cli(verb)
    cli('revert', 'zebra', '--from', 'first')
    cli('undo')
    expect(rowsWith('zebra').length).toBeGreaterThan(8)
    cli('purge', 'zebra', '--yes')
    expect(rowsWith('zebra')).toEqual([])
    expect(holdsBytes(space.home, Buffer.from(SECRET))).toEqual([])
    const summaries = savepointJson(space, ['operations']).map(({ summary }: { summary: string }) => summary)
    expect(summaries).toContainEqual(expect.stringMatching(/^undo run_\w+: \[purged\]$/))
    expect(summaries).toContainEqual(expect.stringMatching(/^rollback to snap_\w+ \(first\), \[purged\]$/))
    expect(summaries).toContainEqual(expect.stringMatching(/^revert \[purged\] to snap_\w+ \(first\)$/))
  })

  it('as a program, or as the directory that a command ran in', () => {
    space.sh('mkdir zoo; printf "#!/bin/sh\\necho hi\\n" > zoo/zebu; chmod +x zoo/zebu')
    run('./zoo/zebu; cd zoo; ls')
    expect(rowsWith('zoo').length).toBeGreaterThan(3)
    cli('purge', 'zoo', '--yes')
    expect(rowsWith('zoo')).toEqual([])
    expect(
      holdsBytes(join(space.home, 'timelines'), Buffer.from('zebu')).filter(file => file.endsWith('jsonl')),
    ).toEqual([])
  })

  it("among somebody else's edits, which an operation lists", async () => {
    const live = await startRun(space, 'echo r >> zebra; echo r >> a; READY; read line')
    await untilLater(space, live.id)
    space.sh('echo hand >> zebra; echo hand >> a')
    live.say('end')
    await live.ended
    expect(rowsWith('"mixed":["a","zebra"]')).toHaveLength(1)
    savepoint(space, ['purge', 'zebra', '--yes'])
    expect(rowsWith('zebra')).toEqual([])
    expect(rowsWith('"mixed":["a"]')).toHaveLength(1)
  })
})
