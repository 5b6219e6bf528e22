/** What others do to the target between the safety snapshot and the end of a rollback: nothing of it is lost. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { onFailpoint } from '../src/store/failpoint.ts'
import { fullImageOf } from './support/full-image.ts'
import { differences } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

let ws: Workspace
let sp: Savepoint
let stop: () => void = () => {}
beforeEach(async () => {
  ws = new Workspace()
  sp = await ws.open()
})
afterEach(() => {
  stop()
  ws.remove()
})

/** Runs `work` once, when the restore reaches that step. */
function during(step: string, work: () => void): void {
  stop = onFailpoint(step, () => {
    stop()
    work()
  })
}

const steps = ['restore:journal', 'restore:staged'] as const

describe.each(steps)('R17 an edit that lands at %s', step => {
  test('R17 in a file that is replaced: the rollback wins, the edit is kept in a snapshot', async () => {
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    ws.write('a', 'now')
    during(step, () => ws.write('a', 'typed in between'))
    const rolled = await sp.rollback(id)
    expect(ws.read('a')).toBe('then')
    expect(rolled.lateEdits).toBeDefined()
    expect(sp.read(rolled.lateEdits!.id, 'a').toString()).toBe('typed in between')
    expect(sp.read(rolled.safety!.id, 'a').toString()).toBe('now')
    expect((await sp.verify()).problems).toEqual([])
  })

  test.each([
    ['a link', 'ln -s other a'],
    ['a directory', 'mkdir a'],
  ])('R17 %s in the place of a file that would get another mode: it stays, and is named', async (_, make) => {
    ws.sh('echo a > a; echo b > b; chmod 644 a')
    const { id } = await sp.snapshot()
    ws.sh('chmod 600 a; echo now > b')
    let made: fs.Stats | undefined
    during(step, () => {
      ws.sh(`rm a; ${make}`)
      made = fs.lstatSync(ws.at('a'))
    })
    const { leftAlone } = await sp.rollback(id)
    expect(leftAlone).toEqual([{ path: 'a', why: 'edited' }])
    expect([fs.lstatSync(ws.at('a')).mode, ws.read('b')]).toEqual([made!.mode, 'b\n'])
  })

  test('R17 it is a safety snapshot, whatever the state before was kept as', async () => {
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    await sp.run({ command: ['sh', '-c', 'echo now > a'] })
    expect(sp.head().type).toBe('final')
    during(step, () => ws.write('a', 'typed in between'))
    const { lateEdits, safety } = await sp.rollback(id)
    expect(safety!.type).toBe('final')
    expect(lateEdits).toMatchObject({ type: 'safety', run: undefined, parent: safety!.id })
    const { decisions } = await sp.prune({ dryRun: true })
    expect(decisions.find(({ snapshot }) => snapshot.id === lateEdits!.id)).toMatchObject({
      keep: true,
      rule: 'safety: younger than 7 days',
    })
  })

  test('R17 in a file and as a new file in a directory that is deleted', async () => {
    ws.write('keep')
    const { id } = await sp.snapshot()
    ws.write('made/sub/a', 'now')
    ws.write('made/sub/b', 'now')
    during(step, () => {
      ws.write('made/sub/a', 'typed in between')
      ws.write('made/new/c', 'made in between')
    })
    const rolled = await sp.rollback(id)
    expect(fs.readdirSync(ws.dir)).toEqual(['keep'])
    const kept = rolled.lateEdits!.id
    expect(sp.read(kept, 'made/sub/a').toString()).toBe('typed in between')
    expect(sp.read(kept, 'made/new/c').toString()).toBe('made in between')
    expect(sp.read(kept, 'made/sub/b').toString()).toBe('now')
  })

  test('R17 where a file is created, by a file that appeared meanwhile', async () => {
    ws.write('a', 'then')
    ws.write('d/b', 'then')
    const { id } = await sp.snapshot()
    ws.sh('rm -r a d')
    during(step, () => {
      ws.write('a', 'new a')
      ws.write('d/c', 'new c')
    })
    const rolled = await sp.rollback(id)
    expect([ws.read('a'), ws.read('d/b')]).toEqual(['then', 'then'])
    const kept = rolled.lateEdits!.id
    expect(sp.read(kept, 'a').toString()).toBe('new a')
    expect(ws.read('d/c') ?? sp.read(kept, 'd/c').toString()).toBe('new c')
    expect((await sp.verify()).problems).toEqual([])
  })

  test('R17 a file that became a directory, and a directory that became a file', async () => {
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    ws.write('a', 'now')
    ws.write('made/x', 'now')
    during(step, () => {
      fs.rmSync(ws.at('a'))
      ws.write('a/inside', 'typed in between')
      fs.rmSync(ws.at('made'), { recursive: true })
      ws.write('made', 'a file now')
    })
    const rolled = await sp.rollback(id)
    expect(ws.read('a')).toBe('then')
    const kept = rolled.lateEdits!.id
    expect(sp.read(kept, 'a/inside').toString()).toBe('typed in between')
    expect(sp.read(kept, 'made').toString()).toBe('a file now')
    expect((await sp.verify()).problems).toEqual([])
  })

  test('R17 in a file whose mode alone is restored: the content stays', async () => {
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    fs.chmodSync(ws.at('a'), 0o600)
    during(step, () => ws.write('a', 'typed in between'))
    await sp.rollback(id)
    expect(ws.read('a')).toBe('typed in between')
    expect(fs.statSync(ws.at('a')).mode & 0o777).toBe(0o644)
  })

  test('R17 what should be replaced or deleted is gone meanwhile: the rollback goes on', async () => {
    ws.write('a', 'then')
    ws.write('m', 'then')
    const { id } = await sp.snapshot()
    const before = fullImageOf(ws.dir)
    ws.write('a', 'now')
    ws.write('new', 'now')
    during(step, () => ws.sh('rm a new'))
    await sp.rollback(id)
    expect(differences(before, fullImageOf(ws.dir))).toEqual([])
  })
})

describe.each(steps)('F6 a symlinked parent planted at %s', step => {
  let outside: string
  beforeEach(() => {
    outside = join(ws.base, 'outside')
    fs.mkdirSync(outside)
    for (const name of ['replaced', 'deleted', 'metadata']) fs.writeFileSync(join(outside, name), 'outside')
  })

  test('F6 nothing outside is written, deleted or changed, and the target is as it was or reported', async () => {
    for (const name of ['replaced', 'created', 'metadata']) ws.write(`d/e/${name}`, 'then')
    const { id } = await sp.snapshot()
    ws.sh('echo now > d/e/replaced; echo now > d/e/deleted; rm d/e/created; chmod 600 d/e/metadata')
    const untouched = fullImageOf(outside)
    during(step, () => {
      fs.renameSync(ws.at('d/e'), ws.at('d/moved'))
      fs.symlinkSync(outside, ws.at('d/e'))
    })
    const failed = await sp.rollback(id).catch(error => error)
    expect(differences(untouched, fullImageOf(outside))).toEqual([])
    expect(failed.code).toBe('io.failed')
    expect(failed.hint).toContain('back as it was')
    expect(fs.readlinkSync(ws.at('d/e'))).toBe(outside)
    expect(fs.readdirSync(ws.at('d/moved')).sort()).toEqual(['deleted', 'metadata', 'replaced'])
    expect(ws.read('d/moved/replaced')).toBe('now\n')

    fs.unlinkSync(ws.at('d/e'))
    await sp.rollback(id)
    expect(fs.readdirSync(ws.at('d'))).toEqual(['e'])
    expect(ws.read('d/e/replaced')).toBe('then')
  })

  test('F6 a new link as the last component is displaced, not followed', async () => {
    ws.write('replaced', 'then')
    ws.write('created', 'then')
    const { id } = await sp.snapshot()
    ws.sh('echo now > replaced; rm created')
    const untouched = fullImageOf(outside)
    during(step, () => {
      fs.rmSync(ws.at('replaced'))
      fs.symlinkSync(join(outside, 'replaced'), ws.at('replaced'))
      fs.symlinkSync(join(outside, 'made'), ws.at('created'))
    })
    await sp.rollback(id)
    expect(differences(untouched, fullImageOf(outside))).toEqual([])
    expect([ws.read('replaced'), ws.read('created')]).toEqual(['then', 'then'])
    expect(fs.lstatSync(ws.at('replaced')).isFile()).toBe(true)
  })
})

test('R15 edits made in the second before a rollback are in the safety snapshot', async () => {
  ws.write('a', 'then')
  const { id } = await sp.snapshot()
  for (let i = 0; i < 20; i++) {
    // Same size, and in the same tick of the clock as the capture before.
    ws.write('a', `edit ${String(i).padStart(2, '0')}`)
    const { safety } = await sp.rollback(id)
    expect(sp.read(safety!.id, 'a').toString()).toBe(`edit ${String(i).padStart(2, '0')}`)
    expect(ws.read('a')).toBe('then')
  }
})
