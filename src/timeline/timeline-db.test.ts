import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { UNREAD_ROOT } from '../model/snapshot.ts'
import { readSnapshotLog } from './logged-rows.ts'
import { TimelineDb } from './timeline-db.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-timeline-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const open = (): TimelineDb => new TimelineDb(join(directory, 'timeline.sqlite'))

it('its version is another one after every change, whoever made it', () => {
  const [ours, theirs] = [open(), open()]
  const versions = [ours.version.now()]
  ours.setMeta('head', 'snap_1')
  versions.push(ours.version.now())
  theirs.setMeta('head', 'snap_2')
  versions.push(ours.version.now())
  expect(new Set(versions).size).toBe(3)
  expect(ours.version.now()).toBe(versions[2])
  ours.transaction(() => expect(ours.version.now()).toBe(undefined))
  ours.close()
  theirs.close()
})

it('what is read at one moment knows nothing of what another process writes meanwhile, which does not wait', () => {
  const [ours, theirs] = [open(), open()]
  theirs.setMeta('head', 'snap_1')
  const seen = ours.atOneMoment(() => {
    const before = ours.head
    theirs.setMeta('head', 'snap_2')
    return [before, ours.head]
  })
  expect([seen, ours.head]).toEqual([['snap_1', 'snap_1'], 'snap_2'])
  ours.close()
  theirs.close()
})

it('what becomes known of a snapshot is a line more in the plain log, which is not written anew and keeps HEAD', () => {
  const ours = open()
  const log = join(directory, 'snapshots.log')
  const none = { added: 0, modified: 0, deleted: 0 }
  const blank = { parent: undefined, label: undefined, run: undefined, command: undefined, turn: undefined }
  const state = { files: 0, bytes: 0, sizeDelta: 0, skippedCount: 0, skipped: [], unsettled: false, runOnly: false }
  const add = (nativeRef: string | undefined) =>
    ours.addSnapshot({
      ...{ ...blank, ...state, type: 'manual' as const, createdAt: 1, backend: 'btrfs', nativeRef },
      ...{ root: UNREAD_ROOT, counts: none },
    }).id
  const [first, second] = [add('{}'), add('{}')] as const
  ours.setHead(first)
  const { ino } = statSync(log)
  const root = '\xab'.repeat(32)
  ours.transaction(() => {
    ours.native.setRead(second, { ...state, root, files: 7 })
    ours.setCounts(second, { ...none, added: 3 })
  })
  const told = readSnapshotLog(log)
  expect(told.snapshots.map(({ id, files, added }) => [id, files, added])).toEqual([
    [first, 0, 0],
    [second, 7, 3],
  ])
  expect(told.snapshots[1]!.root).toEqual(Buffer.from(root, 'latin1'))
  expect(told.head).toBe(first)
  expect(statSync(log).ino).toBe(ino)
  ours.close()
})
