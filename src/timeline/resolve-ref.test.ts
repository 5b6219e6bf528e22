import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeOperation, makeRun, makeSnapshot } from '../model/fixture-snapshot.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { findRun, forgetLostNames, resolveSnapshot } from './resolve-ref.ts'
import { TimelineDb } from './timeline-db.ts'

let directory: string
let db: TimelineDb
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-names-'))
  db = new TimelineDb(join(directory, 'timeline.sqlite'))
})
afterEach(() => {
  db.close()
  rmSync(directory, { recursive: true })
})

const take = (label?: string): Snapshot => db.addSnapshot(makeSnapshot('to be named', { label }))
const find = (ref: string): string => resolveSnapshot(db, ref).id
const refused = (ref: string) => {
  try {
    return find(ref)
  } catch (error) {
    const { code, message, hint, data } = error as { code: string; message: string; hint: string; data: object }
    return { code, message, hint, data }
  }
}

describe('a name that fits one snapshot', () => {
  it('is its id, the beginning of it, its tag, its label, or several of these', () => {
    const one = take('works')
    take('other')
    db.setTag('good', one.id, 0)
    db.setTag('works', one.id, 0)
    for (const ref of [one.id, one.id.slice(0, 11), one.id.slice(5), 'good', 'works']) expect(find(ref)).toBe(one.id)
  })

  it('does not count snapshots that are deleted', () => {
    const old = take('works')
    const one = take('works')
    db.setDeleted([old.id], 1)
    expect(find('works')).toBe(one.id)
    expect(find(old.id)).toBe(old.id)
  })

  it('is a short label although an id begins with it', () => {
    const other = take()
    const one = take(other.id.slice(5, 8))
    expect(find(one.label!)).toBe(one.id)
    expect(find(`snap_${one.label}`)).toBe(other.id)
  })
})

describe('a name of one that is lost', () => {
  const lose = ({ id, label }: Snapshot, at: number, ...tags: string[]) => {
    db.forgetSnapshots([id])
    const names = [id, ...(label ? [label] : []), ...tags]
    db.addOperation(makeOperation({ kind: 'retention', at, state: 'fixed', rule: 'lost', detail: { names } }))
  }
  const lost = (ref: string) => expect.objectContaining({ message: `Cannot find snapshot "${ref}": it is lost` })
  const unfit = expect.objectContaining({
    message: expect.stringContaining('no id, tag or label of this timeline fits'),
  })

  it('is its id, the beginning of it, its tag, or its label', () => {
    const one = take('works')
    lose(one, 1, 'good')
    for (const ref of [one.id, one.id.slice(0, 11), one.id.slice(5), 'works', 'good'])
      expect(refused(ref)).toEqual(lost(ref))
    for (const ref of [one.id.slice(0, 6), one.id.slice(5, 8), 'work', 'wo']) expect(refused(ref)).toEqual(unfit)
  })

  it('is not the beginning of its id where that of another one begins so, which is lost or deleted', () => {
    const as = (id: string) => db.addSnapshot(makeSnapshot('to be named'), id)
    for (const id of ['snap_aaaaaa22', 'snap_aaaaaa33', 'snap_bbbbbb22']) lose(as(id), 1)
    db.setDeleted([as('snap_bbbbbb33').id], 1)
    for (const ref of ['aaaaaa', 'snap_bbbbbb']) expect(refused(ref)).toEqual(unfit)
    for (const ref of ['aaaaaa2', 'snap_bbbbbb2']) expect(refused(ref)).toEqual(lost(ref))
  })

  it('is not the label or tag that a later one had, which was deleted', () => {
    lose(take('works'), 1, 'good')
    const later = take('works')
    db.setDeleted([later.id], 2)
    expect(refused('works')).toEqual(unfit)
    expect(refused('good')).toEqual(lost('good'))
    db.addOperation(makeOperation({ kind: 'tag', detail: { name: 'good' } }))
    expect(refused('good')).toEqual(unfit)
    forgetLostNames(db, db.snapshots(true))
    db.forgetSnapshots([later.id])
    expect(refused('works')).toEqual(unfit)
    lose(take('works'), 3)
    expect(refused('works')).toEqual(lost('works'))
  })

  it('is no more that of an older one, until a later one has it', () => {
    const old = take('works')
    lose(take('works'), old.createdAt + 1)
    expect(refused('works')).toEqual(
      expect.objectContaining({
        code: 'snapshot.ambiguous',
        message: expect.stringContaining('it fits 1, and one that is lost'),
      }),
    )
    expect(resolveSnapshot(db, old.id)).toEqual(old)
    db.addOperation(makeOperation({ kind: 'tag', detail: { name: 'works' } }))
    expect(resolveSnapshot(db, 'works')).toEqual(old)
  })

  it('is one that another had which was deleted before', () => {
    const [one, other] = [take('works'), take('works')]
    db.setDeleted([other.id], 1)
    lose(one, 2)
    forgetLostNames(db, [other])
    expect(refused('works')).toEqual(lost('works'))
  })
})

describe('a name that fits several is an error with their ids', () => {
  it('of two labels, newest first', () => {
    const [old, young] = [take('works'), take('works')]
    expect(refused('works')).toEqual({
      code: 'snapshot.ambiguous',
      message: 'Cannot tell which snapshot "works" is: it fits 2',
      hint: `Write the id of the one that you mean: ${young.id} (label), ${old.id} (label)`,
      data: { matches: [young.id, old.id] },
    })
  })

  it('of a tag and a label', () => {
    const [tagged, labelled] = [take(), take('good')]
    db.setTag('good', tagged.id, 0)
    expect(refused('good')).toMatchObject({
      code: 'snapshot.ambiguous',
      hint: `Write the id of the one that you mean: ${tagged.id} (tag), ${labelled.id} (label)`,
    })
  })

  it('of a label or a tag, and the beginning of an id', () => {
    const other = take()
    const name = other.id.slice(5, 9)
    const one = take(name)
    expect(refused(name)).toMatchObject({
      hint: `Write the id of the one that you mean: ${one.id} (label), ${other.id} (id)`,
    })
    db.setTag(name, one.id, 0)
    expect(refused(name)).toMatchObject({
      message: `Cannot tell which snapshot "${name}" is: it fits 2`,
      hint: `Write the id of the one that you mean: ${one.id} (tag, label), ${other.id} (id)`,
    })
  })

  it('of many: five are named', () => {
    for (let i = 0; i < 7; i++) take('same')
    const { hint, data } = refused('same') as { hint: string; data: { matches: string[] } }
    expect(hint.match(/snap_/g)).toHaveLength(5)
    expect(hint).toMatch(/, …$/)
    expect(data.matches).toHaveLength(7)
  })

  it('of runs', () => {
    const run = () => db.addRun(makeRun())
    const ids = [run().id, run().id]
    expect(findRun(db, ids[0]!)?.id).toBe(ids[0])
    expect(findRun(db, 'run_zzzzzzzzz')).toBeUndefined()
  })
})

describe('the beginning of an id that is too short to mean it', () => {
  const tooShort = (ref: string) => ({
    code: 'snapshot.ambiguous',
    message: `Cannot tell which snapshot "${ref}" is: it is too short for the beginning of an id`,
  })

  it('selects nothing, even where it fits one snapshot only', () => {
    const { id } = take()
    for (const ref of [id.slice(5, 6), id.slice(5, 8)])
      expect(refused(ref)).toMatchObject({ ...tooShort(ref), hint: `Write at least 4 characters: ${id}` })
    for (const ref of ['snap_', id.slice(0, 6)])
      expect(refused(ref)).toMatchObject({ ...tooShort(ref), hint: `Write at least 2 characters after snap_: ${id}` })
    for (const ref of [id.slice(5, 9), id.slice(0, 7)]) expect(find(ref)).toBe(id)
  })

  it('is unknown where no id begins so, and a tag where there is one', () => {
    const { id } = take()
    expect(refused('!')).toMatchObject({ code: 'snapshot.unknown' })
    db.setTag(id.slice(5, 6), id, 0)
    expect(find(id.slice(5, 6))).toBe(id)
  })

  it('of a run', () => {
    const { id } = db.addRun(makeRun())
    expect(() => findRun(db, 'run_')).toThrow(
      'Cannot tell which run "run_" is: it is too short for the beginning of an id',
    )
    expect(findRun(db, id.slice(0, 6))?.id).toBe(id)
  })
})
