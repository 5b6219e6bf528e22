import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CachedDir, emptyCache, type StatCache, smudge } from './stat-cache.ts'
import { leaveInFile, loadStatCache, loadStatCacheRoot, removeStatCache, saveStatCache } from './stat-cache-file.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'stat-cache-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const idOf = (n: number) => String(n).padStart(32, '0')
/** Two walk records' worth of bytes: enough for a smudge at 0. */
const dirOf = (n: number): CachedDir => ({
  records: Buffer.alloc(120, n % 256),
  rulesIn: `in${n % 3}`,
  rulesOut: `out${n % 2}`,
  tree: idOf(n),
  childDirs: n % 2 ? [`c${n}`, 'é'] : [],
  noteworthy: n % 64,
  overridden: n % 7 === 0,
  unknown: n % 4,
  skipped: n % 5 === 0 ? 1 : 0,
  files: n,
  bytes: n * 3_000_000_000,
})

function cacheOf(count: number): StatCache {
  const cache = emptyCache('key')
  for (let i = 0; i < count; i++) cache.dirs.set(`d${i}`, dirOf(i))
  cache.root = idOf(1)
  return cache
}

/** What counts of a cache, whichever buffers it lies in. */
const plain = ({ dirs, root, rootKey }: StatCache) => ({
  root,
  rootKey,
  sums: [dirs.files, dirs.bytes, dirs.emptyDirs, [...dirs.skipped].sort()],
  dirs: [...dirs]
    .map(
      ([
        path,
        { records, rulesIn, rulesOut, tree, childDirs, noteworthy, overridden, unknown, skipped, files, bytes },
      ]) => ({
        ...{ path, records: records.toString('hex'), rulesIn, rulesOut, tree, childDirs, noteworthy, overridden },
        ...{ unknown, skipped, files, bytes },
      }),
    )
    .sort((a, b) => (a.path < b.path ? -1 : 1)),
})
const load = () => loadStatCache(directory, 'key')
const bytesOf = (name: string) => statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0

it('comes back as it was after any changes, by the process that made them or by others', () => {
  const change = fc.record({ path: fc.nat(99), what: fc.constantFrom('set', 'delete', 'smudge'), value: fc.nat(999) })
  const step = fc.record({ changes: fc.array(change, { maxLength: 20 }), reload: fc.boolean(), leave: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), steps => {
      removeStatCache(directory)
      let cache = cacheOf(80)
      saveStatCache(directory, cache)
      for (const [i, { changes, reload, leave }] of steps.entries()) {
        if (reload) cache = load()
        if (leave) cache = leaveInFile(directory, cache, true)
        expect(cache.bytes.isInFile || !leave).toBe(true)
        for (const { path, what, value } of changes) {
          const dir = cache.dirs.get(`d${path}`)
          if (what === 'set') cache.dirs.set(`d${path}`, dirOf(value))
          else if (what === 'delete') cache.dirs.delete(`d${path}`)
          else if (dir) smudge(dir, 0)
        }
        cache.root = idOf(i + 2)
        saveStatCache(directory, cache)
        expect(plain(load())).toEqual(plain(cache))
        expect(loadStatCacheRoot(directory)).toBe(cache.root)
      }
    }),
  )
})

describe('left in the file', () => {
  it('is still there when others have written another one, or removed it', () => {
    saveStatCache(directory, cacheOf(800))
    const cache = leaveInFile(directory, load(), false)
    saveStatCache(directory, cacheOf(60))
    expect(cache.bytes.isInFile).toBe(true)
    expect(cache.dirs.get('d7')!.records).toEqual(dirOf(7).records)
    removeStatCache(directory)
    // Many: all of it is read.
    expect(plain(cache)).toEqual(plain(cacheOf(800)))
    smudge(cache.dirs.get('d7')!, 0)
    saveStatCache(directory, cache)
    expect(plain(load())).toEqual(plain(cache))
    expect(load().dirs.get('d7')!.records).not.toEqual(dirOf(7).records)
  })

  it('not in one that another process has written, nor in one that says something else', () => {
    const cache = cacheOf(80)
    saveStatCache(directory, cache)
    expect(leaveInFile(directory, cache, false)).toBe(cache)
    saveStatCache(directory, { ...cacheOf(80), root: idOf(5) })
    expect(leaveInFile(directory, cache, true)).toBe(cache)
    const loaded = load()
    saveStatCache(directory, cacheOf(80))
    expect(leaveInFile(directory, loaded, true)).toBe(loaded)
    expect([cache.bytes.isInFile, loaded.bytes.isInFile]).toEqual([false, false])
  })
})

describe('beside a base of 80 directories', () => {
  let cache: StatCache
  beforeEach(() => {
    cache = cacheOf(80)
    saveStatCache(directory, cache)
    cache.dirs.set('d3', dirOf(500))
    cache.root = idOf(2)
    saveStatCache(directory, cache)
  })

  it('one changed directory takes little', () => {
    expect(bytesOf('statcache.changes')).toBeGreaterThan(0)
    expect(bytesOf('statcache.changes')).toBeLessThan(bytesOf('statcache') / 10)
  })

  it('many make a new base', () => {
    for (let i = 0; i < 30; i++) cache.dirs.set(`d${i}`, dirOf(600 + i))
    saveStatCache(directory, cache)
    expect(bytesOf('statcache.changes')).toBe(0)
    expect(plain(load())).toEqual(plain(cache))
  })

  it('a torn or lost file of changes leaves the base, with its root', () => {
    const file = join(directory, 'statcache.changes')
    writeFileSync(file, readFileSync(file).subarray(0, -1))
    expect(plain(load())).toEqual(plain(cacheOf(80)))
    expect(loadStatCacheRoot(directory)).toBe(idOf(1))
    rmSync(file)
    expect(plain(load())).toEqual(plain(cacheOf(80)))
  })

  it('changes against another base count for nothing, and the next save is a base', () => {
    const other = cacheOf(60)
    const changes = readFileSync(join(directory, 'statcache.changes'))
    saveStatCache(directory, other)
    writeFileSync(join(directory, 'statcache.changes'), changes)
    expect(plain(load())).toEqual(plain(other))
    saveStatCache(directory, cache)
    expect(bytesOf('statcache.changes')).toBe(0)
    expect(plain(load())).toEqual(plain(cache))
  })

  it('a torn base is no cache', () => {
    const file = join(directory, 'statcache')
    writeFileSync(file, readFileSync(file).subarray(1))
    expect(load().dirs.size).toBe(0)
    expect(loadStatCacheRoot(directory)).toBe('')
  })

  it('another root has no part in it', () => expect(loadStatCache(directory, 'other').dirs.size).toBe(0))
})
