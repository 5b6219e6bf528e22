/**
 * Changes from outside race a capture of a tree in which all is old. Whatever the moment, the snapshot is a state that
 * there was, or says that it may not be. Change times prove the first, so that the tree need not be looked at again.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { addon } from '../src/native/addon.ts'
import { onFailpoint } from '../src/store/failpoint.ts'
import { CaptureClock } from '../src/targets/dir/capture-clock.ts'
import type { PassResult } from '../src/targets/dir/pass.ts'
import { COARSE_SLACK_MS } from '../src/targets/dir/racy.ts'
import { type CachedDir, emptyCache, smudge } from '../src/targets/dir/stat-cache.ts'
import { splitListings } from '../src/targets/dir/walk-record.ts'
import { Workspace } from './support/workspace.ts'

const RACES = 12
const DIRS = 90 // more than a batch of the walk
const spaces = Array.from({ length: RACES + 1 }, () => new Workspace())
const at = (space: Workspace, i: number) => space.at(`d${i}`)

beforeAll(async () => {
  for (const space of spaces)
    for (let i = 0; i < DIRS; i++) for (const name of ['f', 'sub/g']) space.write(`d${i}/${name}`, `${name} of ${i}`)
  // Time itself is waited for: nothing can give a file an older change time.
  await pause(COARSE_SLACK_MS + 100)
}, 60_000)
afterAll(() => {
  for (const space of spaces) space.remove()
})

const changes: ((directory: string, n: number) => void)[] = [
  (dir, n) => writeFileSync(join(dir, 'f'), `changed ${n}`),
  (dir, n) => writeFileSync(join(dir, `new${n}`), 'new'),
  dir => rmSync(join(dir, 'f'), { force: true }),
  (dir, n) => mkdirSync(join(dir, `dir${n}`)),
  dir => chmodSync(join(dir, 'sub'), 0o700),
  (dir, n) => renameSync(join(dir, 'sub'), join(dir, `moved${n}`)),
]

/** All of a tree as text. */
function stateOf(directory: string, path = ''): string {
  const lines = readdirSync(join(directory, path), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(entry => {
      const own = join(path, entry.name)
      const { mode } = statSync(join(directory, own))
      return `${own} ${mode} ${entry.isDirectory() ? stateOf(directory, own) : readFileSync(join(directory, own), 'utf8')}`
    })
  return lines.join('\n')
}

describe('a change at every other step of the walk', () => {
  let release = () => {}
  afterEach(() => release())

  it.each(Array.from({ length: RACES }, (_, i) => i))('race %i', async race => {
    const space = spaces[race]!
    const savepoint = await space.open()
    const states = [stateOf(space.dir)]
    let step = 0
    release = onFailpoint('capture:walking', () => {
      if (++step > 3 || (race + step) % 2 === 0) return
      // Listed already, or not yet: from the one end of the tree or the other.
      const place = (race * 31 + step * 17) % DIRS
      changes[(race + step) % changes.length]!(at(space, place), step)
      states.push(stateOf(space.dir))
    })
    const { id, unsettled } = await savepoint.snapshot()
    release()
    const copy = join(space.base, 'copy')
    await savepoint.rollback(id, { to: copy })
    if (!unsettled) expect(states).toContain(stateOf(copy))
    expect(step).toBeGreaterThan(1)
  })
})

describe('what change times prove', () => {
  const space = spaces[RACES]!
  let root: number
  beforeAll(() => {
    root = addon.openRoot(Buffer.from(space.dir))
  })
  afterAll(() => addon.close(root))

  async function passOver(path: string): Promise<PassResult> {
    const [listing] = splitListings(await addon.scanDirs(root, Buffer.from(path)), 1)
    const cache = emptyCache()
    cache.dirs.set(path, { ...blank, records: listing!.records })
    const rest = { tree: '', unsettledGit: new Set<string>(), changed: true, refsMoved: false, packLost: false }
    return { ...rest, cache, unsettled: new Set([path]), newestListingNs: listing!.ctimeNs }
  }
  const blank: CachedDir = {
    ...{ records: Buffer.alloc(0), rulesIn: '', rulesOut: '', tree: '', childDirs: [], noteworthy: 0 },
    ...{ overridden: false, unknown: 0, skipped: 0, files: 0, bytes: 0 },
  }

  it('nothing but old change times is the state at the start', async () =>
    expect(new CaptureClock(root).areAsAtStart(await passOver('d0'))).toBe(true))

  it.each(changes.map((change, i) => ({ change, path: `d${i + 1}` })))('$path: a change is seen', async race => {
    const clock = new CaptureClock(root)
    race.change(space.at(race.path), 1)
    expect(clock.areAsAtStart(await passOver(race.path))).toBe(false)
  })

  it('not what happened right before, in the same tick of a clock', async () => {
    writeFileSync(space.at('d20/f'), 'again')
    expect(new CaptureClock(root).areAsAtStart(await passOver('d20'))).toBe(false)
  })

  it('not what is to be read again, nor what could not be listed', async () => {
    const pass = await passOver('d21')
    expect(new CaptureClock(root).areAsAtStart({ ...pass, newestListingNs: undefined })).toBe(false)
    smudge(pass.cache.dirs.get('d21')!, 0)
    expect(new CaptureClock(root).areAsAtStart(pass)).toBe(false)
  })

  it('not where the times may come from another clock', async () => {
    const proc = addon.openRoot(Buffer.from('/proc'))
    const clock = new CaptureClock(proc)
    addon.close(proc)
    expect(clock.areAsAtStart(await passOver('d22'))).toBe(false)
  })
})
