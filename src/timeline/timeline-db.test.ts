import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { TimelineDb } from './timeline-db.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-timeline-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it('what is read at one moment knows nothing of what another process writes meanwhile, which does not wait', () => {
  const [ours, theirs] = [1, 2].map(() => new TimelineDb(join(directory, 'timeline.sqlite'))) as [
    TimelineDb,
    TimelineDb,
  ]
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
