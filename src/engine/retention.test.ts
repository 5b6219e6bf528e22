import { describe, expect, test } from 'vitest'
import { defaultConfig } from '../config/config.ts'
import type { Operation, Snapshot, SnapshotType } from '../model/snapshot.ts'
import { decideRetention, type RetentionInput } from './retention.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const NOW = 1000 * DAY_MS
const retention = defaultConfig.snapshots.retention

const snapshot = (seq: number, type: SnapshotType, over: Partial<Snapshot> = {}): Snapshot =>
  ({
    id: `s${seq}`,
    seq,
    parent: seq === 0 ? undefined : `s${seq - 1}`,
    type,
    createdAt: NOW - 100 * DAY_MS,
    ...over,
  }) as Snapshot

/** A line of snapshots of one type between a manual root and a manual HEAD. */
function line(type: SnapshotType, count: number): Snapshot[] {
  const middle = Array.from({ length: count }, (_, i) => snapshot(i + 1, type))
  return [snapshot(0, 'manual'), ...middle, snapshot(count + 1, 'manual')]
}

function decide(snapshots: Snapshot[], over: Partial<RetentionInput> = {}) {
  const decisions = decideRetention({
    snapshots,
    parentOf: one => one.parent,
    head: snapshots.at(-1)!.id,
    tagged: new Set(),
    operations: [],
    unended: new Set(),
    undoable: new Set(),
    retention,
    now: NOW,
    ...over,
  })
  return new Map(decisions.map(({ snapshot: { id }, keep, rule }) => [id, { keep, rule }]))
}

const kept = (decisions: Map<string, { keep: boolean }>) =>
  [...decisions].filter(([, { keep }]) => keep).map(([id]) => id)

describe('the pools', () => {
  test.each<SnapshotType>(['interval', 'change'])('%s: a ring of auto_max', type => {
    const decisions = decide(line(type, 25))
    expect(kept(decisions)).toEqual(['s26', ...Array.from({ length: 10 }, (_, i) => `s${25 - i}`), 's0'])
    expect(decisions.get('s1')).toEqual({ keep: false, rule: 'ring of auto_max (10)' })
    expect(kept(decide(line(type, 5), { retention: { ...retention, auto_max: 2 } }))).toEqual(['s6', 's5', 's4', 's0'])
  })

  test('the ring has room for HEAD, too: there is none more when the next one follows it', () => {
    const snapshots = line('interval', 5).slice(0, -1)
    const over = { head: 's5', retention: { ...retention, auto_max: 2 } }
    expect(kept(decide(snapshots, over))).toEqual(['s5', 's4', 's0'])
    expect(kept(decide(snapshots, { ...over, head: 's2' }))).toEqual(['s5', 's4', 's2', 's0'])
    expect(kept(decide(snapshots, { ...over, tagged: new Set(['s2']) }))).toEqual(['s5', 's4', 's2', 's0'])
    expect(kept(decide(snapshots, { head: 's5', retention: { ...retention, auto_max: 0 } }))).toEqual(['s5', 's0'])
  })

  test.each<SnapshotType>(['git', 'build', 'test', 'idle', 'guard', 'turn', 'final'])(
    '%s: 30 newest, then ranks 2^k-1 and the oldest',
    type => {
      const count = 300
      const ranks = kept(decide(line(type, count)))
        .slice(1, -1)
        .map(id => count + 1 - Number(id.slice(1)))
      expect(ranks).toEqual([...Array.from({ length: 30 }, (_, i) => i + 1), 31, 63, 127, 255, 300])
    },
  )

  test('interval and change share one ring; git and build one recorder', () => {
    const mixed = line('interval', 24).map((one, i) =>
      i % 2 && one.type === 'interval' ? { ...one, type: 'change' as const } : one,
    )
    expect(kept(decide(mixed))).toHaveLength(12)
    const recorded = line('git', 60).map((one, i) =>
      i % 2 && one.type === 'git' ? { ...one, type: 'build' as const } : one,
    )
    expect(kept(decide(recorded))).toHaveLength(2 + 31 + 1)
  })

  test('thinned out after each one, as while a run goes on, it still reaches back', () => {
    let snapshots = [snapshot(0, 'manual')]
    for (let seq = 1; seq <= 1000; seq++) {
      // What it says about its command is no name that somebody gave it.
      snapshots.push({ ...snapshot(seq, 'guard'), ...(seq % 2 === 0 && { label: 'irreversible' }) })
      const parentOf = (one: Snapshot) => snapshots[snapshots.indexOf(one) - 1]?.id
      const decisions = decide(snapshots, { parentOf })
      snapshots = snapshots.filter(({ id }) => decisions.get(id)!.keep)
    }
    // The newest is HEAD. Of each octave before the 30 that follow there is one.
    const octaves = snapshots.slice(1, -31).map(({ seq }) => Math.ceil(Math.log2(1000 - seq + 1)))
    expect(octaves).toEqual([10, 9, 8, 7, 6, 5])
  })

  test('N1 manual, imported, labelled and tagged ones stay, however many', () => {
    const many = line('interval', 100).map((one, i) => {
      if (one.type !== 'interval') return one
      return [
        { ...one, type: 'manual' as const },
        { ...one, label: `l${i}` },
        { ...one, type: 'import' as const },
        one,
      ][i % 4]!
    })
    const tagged = new Set(many.filter((one, i) => i % 4 === 3 && one.type === 'interval').map(one => one.id))
    expect(kept(decide(many, { tagged }))).toHaveLength(many.length)
    expect(kept(decide(many, { tagged, keep: 0 }))).toHaveLength(many.length)
  })

  test('pre-run ones and the root stay unless delete_initial', () => {
    const snapshots = [snapshot(0, 'interval'), snapshot(1, 'pre-run'), snapshot(2, 'manual')]
    const strict = decide(snapshots, { keep: 0 })
    expect([strict.get('s0')!.rule, strict.get('s1')!.rule]).toEqual(['root', 'pre-run'])
    const loose = decide(snapshots, { retention: { ...retention, delete_initial: true } })
    expect(loose.get('s1')).toEqual({ keep: false, rule: 'delete_initial' })
  })

  test('HEAD, branch points and leaves stay, whatever their type', () => {
    // s1 has two children; s2 ends one branch, s4 is HEAD of the other.
    const snapshots = [
      snapshot(0, 'manual'),
      snapshot(1, 'interval'),
      snapshot(2, 'interval'),
      snapshot(3, 'interval', { parent: 's1' }),
      snapshot(4, 'interval'),
    ]
    const decisions = decide(snapshots, { keep: 0 })
    expect([...decisions].map(([id, { keep, rule }]) => `${id} ${keep} ${rule}`)).toEqual([
      's4 true HEAD',
      's3 false beyond --keep 0',
      's2 true leaf',
      's1 true branch point',
      's0 true manual',
    ])
  })

  test('what is deleted in between does not make a leaf or a root', () => {
    const [s0, s1, , s3] = line('interval', 2) as [Snapshot, Snapshot, Snapshot, Snapshot]
    const parents = new Map([
      [s0.id, undefined],
      [s1.id, s0.id],
      [s3.id, s1.id],
    ])
    const decisions = decide([s0, s1, s3], { keep: 0, parentOf: one => parents.get(one.id) })
    expect(decisions.get('s1')).toEqual({ keep: false, rule: 'beyond --keep 0' })
  })
})

describe('safety snapshots', () => {
  const safety = (age: number) => [
    snapshot(0, 'manual'),
    snapshot(1, 'safety', { createdAt: NOW - age }),
    snapshot(2, 'manual'),
  ]
  const operation = (state: Operation['state']) => [{ state, before: 's1', after: 's0' } as Operation]

  test('stay for seven days', () => {
    expect(decide(safety(6.9 * DAY_MS)).get('s1')!.keep).toBe(true)
    expect(decide(safety(7.1 * DAY_MS)).get('s1')).toMatchObject({
      keep: false,
      rule: expect.stringMatching(/older than 7 days/),
    })
  })

  test('stay as long as an operation can be undone or redone with them', () => {
    for (const state of ['done', 'undone'] as const) {
      expect(decide(safety(99 * DAY_MS), { operations: operation(state) }).get('s1')!.keep).toBe(true)
    }
    expect(decide(safety(99 * DAY_MS), { operations: operation('past') }).get('s1')!.keep).toBe(false)
  })
})

test("kept snapshots with somebody else's files stay for seven days, and as long as the run can be undone", () => {
  const over = { type: 'kept', run: 'run_a', label: 'f', createdAt: NOW - 6.9 * DAY_MS, holdsOthers: true } as const
  const snapshots = line('kept', 100).map(one => (one.seq === 7 ? { ...one, ...over } : one))
  const young = decide(snapshots, { keep: 0 })
  expect(young.get('s7')).toEqual({ keep: true, rule: expect.stringContaining('younger than 7 days') })
  expect([...young].filter(([, { keep }]) => keep)).toHaveLength(3)
  const old = snapshots.map(one => (one.seq === 7 ? { ...one, createdAt: NOW - 7.1 * DAY_MS } : one))
  expect(decide(old).get('s7')!.keep).toBe(false)
  const undoable = decide(old, { undoable: new Set(['run_a']) }).get('s7')
  expect(undoable).toEqual({ keep: true, rule: expect.stringContaining('can be undone') })
})

test('one that was taken up after its run is no branch that somebody left', () => {
  const beside = line('interval', 3).map(one => (one.seq === 2 ? { ...one, type: 'kept' as const, run: 'run_a' } : one))
  const snapshots = beside.map(one => (one.parent === 's2' ? { ...one, parent: 's1' } : one))
  expect(decide(snapshots, { keep: 0 }).get('s2')!.keep).toBe(false)
})

test('--keep N and a run narrow it', () => {
  const snapshots = line('interval', 6).map(one => (one.seq % 2 ? { ...one, run: 'run_a' } : one))
  expect(kept(decide(snapshots, { keep: 1 }))).toEqual(['s7', 's6', 's0'])
  const narrowed = decide(snapshots, { keep: 0, run: 'run_a' })
  expect([...narrowed].filter(([, { keep }]) => !keep).map(([id]) => id)).toEqual(['s5', 's3', 's1'])
  expect(narrowed.get('s2')!.rule).toBe('not of this run')
})
