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
