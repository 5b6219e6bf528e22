import { expect, it } from 'vitest'
import { added, deleted, makeEntry, makeNodes, makeRestore } from '../cli/fixture-result.ts'
import { makeOperation, makeRun, makeSnapshot } from '../model/fixture-snapshot.ts'
import * as json from './json.ts'
import { doctorJson } from './json-maintain.ts'

it('has exactly the promised keys for a snapshot', () => {
  const snapshot = makeSnapshot('aaaa2222', {
    sizeDelta: 12,
    counts: { added: 1, modified: 2, deleted: 3 },
    skippedCount: 1,
  })
  expect(json.snapshotJson(snapshot, { tags: ['good'], head: true })).toEqual({
    id: 'snap_aaaa2222',
    type: 'manual',
    label: null,
    backend: 'cas',
    created_at: '2026-01-31T12:00:00.000Z',
    size_delta: 12,
    native_ref: null,
    damage: null,
    parent: null,
    run: null,
    stats: { added: 1, modified: 2, deleted: 3, files: 1, bytes: 1, skipped: 1 },
    tags: ['good'],
    head: true,
    partial: true,
    read: true,
    turn: null,
  })
})

it('writes paths without loss and digests in hex', () => {
  const change = {
    kind: 'renamed' as const,
    path: 'b\xff',
    from: 'a\nx',
    before: makeEntry('a'),
    after: makeEntry('b', { mode: 0o4755 }),
  }
  expect(json.changeJson(change)).toMatchObject({
    kind: 'renamed',
    path: 'b\\xff',
    from: 'a\\nx',
    after: { type: 'file', mode: '4755', size: 3, mtime_ns: '5', digest: '02'.repeat(32), link_target: null },
  })
  const link = {
    kind: 'added' as const,
    path: 'l',
    after: makeEntry('l', { kind: 'link', target: '\xff', content: '' }),
  }
  expect(json.changeJson(link).after).toMatchObject({ type: 'link', size: null, digest: null, link_target: '\\xff' })
})

it('adds line counts to a diff only when they were asked for', () => {
  const diff = { from: 'snap_a', to: 'live', changes: [added('a'), deleted('b')] }
  expect(json.diffJson(diff).changes[0]).not.toHaveProperty('lines')
  const counted = json.diffJson(diff, [{ insertions: 1, deletions: 0 }, undefined])
  expect(counted.changes.map(change => (change as { lines?: unknown }).lines)).toEqual([
    { insertions: 1, deletions: 0 },
    null,
  ])
})

it('names what a restore did', () => {
  const keptCopy = { snapshot: 'snap_cccc2222', backend: 'btrfs' as const, where: '/k', file: '/k/x\xff' }
  const result = makeRestore({
    changes: [{ action: 'create', path: 'a\xff', files: 1 }],
    leftAlone: [{ path: 'b', why: 'edited' }],
    keptDirs: ['node_modules'],
    hidden: { count: 300, paths: ['made/\xff'] },
    gone: { count: 200, paths: [{ path: 'x\xff', reason: 'excluded', snapshot: undefined, kept: keptCopy }] },
    uncaptured: [{ path: 'was\xff', reason: 'mount' }],
    safety: makeSnapshot('bbbb2222'),
    operation: makeOperation(),
    stillOpen: [{ path: 'log\xff', processes: [{ pid: 7, name: 'sh' }] }],
  })
  expect(json.restoreJson(result)).toEqual({
    snapshot: 'snap_aaaa2222',
    dry_run: false,
    to: null,
    files: { created: 0, deleted: 0, replaced: 0, metadata: 0 },
    empty_dirs: 0,
    changes: [{ action: 'create', path: 'a\\xff', files: 1 }],
    left_alone: [{ path: 'b', why: 'edited' }],
    kept_dirs: ['node_modules'],
    hidden: { count: 300, paths: [String.raw`made/\xff`] },
    gone: {
      count: 200,
      paths: [
        {
          path: String.raw`x\xff`,
          reason: 'excluded',
          snapshot: null,
          kept: { ...keptCopy, file: String.raw`/k/x\xff` },
        },
      ],
    },
    unprotected: { count: 0, paths: [] },
    mixed: [],
    uncaptured: [{ path: String.raw`was\xff`, reason: 'mount', kept: null }],
    would_stop: [],
    still_open: [{ path: String.raw`log\xff`, processes: [{ pid: 7, name: 'sh' }] }],
    safety: 'snap_bbbb2222',
    late_edits: null,
    operation: 'op_aaaa2222',
  })
})

it('survives JSON: no undefined, no bigint', () => {
  const values = [
    json.logNodeJson(makeNodes('b a')[0]!),
    json.snapshotDetailJson(makeSnapshot('a', { skipped: [{ path: 'x', reason: 'unreadable' }] })),
    json.operationJson(makeOperation()),
    json.runJson(makeRun({ exitCode: undefined, endedAt: undefined })),
    json.diffJson({ from: 'a', to: 'b', changes: [added('x')] }),
    json.undoJson({ operation: makeOperation(), dryRun: false, restore: makeRestore(), effect: '' }),
    doctorJson({ checks: [{ name: 'n', state: 'ok', detail: 'd' }], config: [] }),
    json.historyJson({
      path: 'p',
      currentSize: undefined,
      isDirectory: false,
      isHidden: false,
      movedTo: undefined,
      kept: undefined,
      versions: [],
    }),
  ]
  for (const value of values) expect(JSON.parse(JSON.stringify(value))).toEqual(value)
})
