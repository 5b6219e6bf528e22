/** A capture shows the state in which it began, whatever a run does meanwhile, if each change waits until it may go on. */
import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { captureLive } from '../src/engine/capture-live.ts'
import { closeContext, openContext } from '../src/engine/open.ts'
import { type Change, Preserved } from '../src/targets/dir/preserved.ts'
import { Workspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 8)
const DIRS = 40

/** A change of the tree: what it is about, and the change itself. Both are made when it is its turn. */
type Step = (space: Workspace, pick: (n: number) => number) => { change: Change; act: () => void } | undefined

function somewhere(space: Workspace, pick: (n: number) => number): { files: string[]; dirs: string[] } {
  const all = readdirSync(space.dir, { recursive: true, withFileTypes: true })
  const path = (entry: (typeof all)[number]) => join(entry.parentPath, entry.name).slice(space.dir.length + 1)
  const from = pick(Math.max(1, all.length))
  const turned = [...all.slice(from), ...all.slice(0, from)]
  return {
    files: turned.filter(entry => entry.isFile()).map(path),
    dirs: turned.filter(entry => entry.isDirectory()).map(path),
  }
}

const of = (paths: string[], subtrees: string[] = []): Change => ({ paths, shared: [], subtrees })
const isShared = (file: string): boolean => {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat?.isFile() === true && stat.nlink > 1
}
const steps: Record<string, Step> = {
  write: (space, pick) => {
    const [file] = somewhere(space, pick).files
    return file === undefined ? undefined : { change: of([file]), act: () => writeFileSync(space.at(file), 'other') }
  },
  append: (space, pick) => {
    const [file] = somewhere(space, pick).files
    return file === undefined ? undefined : { change: of([file]), act: () => appendFileSync(space.at(file), 'more') }
  },
  truncate: (space, pick) => {
    const [file] = somewhere(space, pick).files
    return file === undefined ? undefined : { change: of([file]), act: () => truncateSync(space.at(file), 1) }
  },
  create: (space, pick) => {
    const [dir = ''] = somewhere(space, pick).dirs
    const path = join(dir, `new${pick(50)}`)
    return { change: of([path]), act: () => writeFileSync(space.at(path), 'new') }
  },
  unlink: (space, pick) => {
    const [file] = somewhere(space, pick).files
    return file === undefined ? undefined : { change: of([file]), act: () => unlinkSync(space.at(file)) }
  },
  chmod: (space, pick) => {
    const [file] = somewhere(space, pick).files
    return file === undefined ? undefined : { change: of([file]), act: () => chmodSync(space.at(file), 0o600) }
  },
  chmodDirectory: (space, pick) => {
    const [dir] = somewhere(space, pick).dirs
    return dir === undefined ? undefined : { change: of([dir]), act: () => chmodSync(space.at(dir), 0o700) }
  },
  renameFile: (space, pick) => {
    const { files, dirs } = somewhere(space, pick)
    if (files.length < 2) return undefined
    const to = join(dirs.at(-1) ?? '', 'renamed')
    return { change: of([files[0]!, to]), act: () => renameSync(space.at(files[0]!), space.at(to)) }
  },
  moveDirectory: (space, pick) => {
    const { dirs } = somewhere(space, pick)
    const to = `moved${pick(1000)}`
    if (dirs[0] === undefined) return undefined
    return { change: of([dirs[0], to], [dirs[0]]), act: () => renameSync(space.at(dirs[0]!), space.at(to)) }
  },
  mkdir: (space, pick) => {
    const [dir = ''] = somewhere(space, pick).dirs
    const path = join(dir, `dir${pick(50)}`)
    return { change: of([path]), act: () => mkdirSync(space.at(path)) }
  },
  rmdir: (space, pick) => {
    const dir = somewhere(space, pick).dirs.find(each => readdirSync(space.at(each)).length === 0)
    return dir === undefined ? undefined : { change: of([dir], [dir]), act: () => rmdirSync(space.at(dir)) }
  },
  link: (space, pick) => {
    const [file] = somewhere(space, pick).files
    const to = `link${pick(1000)}`
    return file === undefined
      ? undefined
      : { change: of([file, to]), act: () => linkSync(space.at(file), space.at(to)) }
  },
}

function build(space: Workspace): void {
  for (let i = 0; i < DIRS; i++) {
    mkdirSync(space.at(`d${i}/sub/empty`), { recursive: true })
    for (let j = 0; j < 8; j++) space.write(`d${i}/f${j}`, `${i} ${j} ${'x'.repeat(j * 700)}`)
    space.write(`d${i}/sub/inner`, `inner ${i}`)
    symlinkSync('f1', space.at(`d${i}/symlink`))
    if (i > 0) linkSync(space.at('d0/f0'), space.at(`d${i}/hard`))
  }
  for (let i = 0; i < DIRS; i++) linkSync(space.at(`d${i}/f7`), space.at(`d${DIRS - 1 - i}/pair`))
  space.write('large', Buffer.alloc(3_000_000, 'abc'))
  chmodSync(space.at('d3'), 0o750)
}

const picks = fc.array(fc.record({ step: fc.constantFrom(...Object.keys(steps)), at: fc.nat(), pause: fc.nat(3) }), {
  minLength: 20,
  maxLength: 60,
})

interface Pick {
  step: string
  at: number
  pause: number
}

/** Whether a capture shows the state before, although these changes are made meanwhile. */
async function isPreserved(todo: Pick[], isKnown: boolean, all: Record<string, Step>): Promise<boolean> {
  const space = new Workspace()
  build(space)
  const ctx = await openContext({ cwd: space.dir, env: space.env, home: space.home, create: true })
  try {
    const before = await captureLive(ctx)
    if (!isKnown)
      for (const id of readdirSync(join(space.home, 'timelines')))
        rmSync(join(space.home, 'timelines', id, 'statcache'), { force: true })
    const preserved = new Preserved()
    const capture = captureLive(ctx, { preserved })
    preserved.start()
    preserved.begin()
    for (const { step, at, pause } of todo) {
      for (let i = 0; i < pause; i++) await new Promise(setImmediate)
      let seed = at
      const pick = (n: number) => {
        seed = (seed * 1103515245 + 12345) & 0x7fffffff
        return seed % n
      }
      const made = all[step]!(space, pick)
      if (!made) continue
      const shared = made.change.paths.filter(path => isShared(space.at(path)))
      await preserved.secure({ ...made.change, shared })
      try {
        made.act()
      } catch (error) {
        if (!refusals.has((error as NodeJS.ErrnoException).code!)) throw error
      }
    }
    const after = await capture
    expect(statSync(space.dir).isDirectory()).toBe(true)
    return after.root === before.root
  } finally {
    closeContext(ctx)
    space.remove()
  }
}
const refusals = new Set(['ENOENT', 'EEXIST', 'ENOTEMPTY', 'EINVAL', 'EISDIR', 'ENOTDIR', 'EMLINK'])

test('the state before, exactly, whichever changes come when', { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(picks, fc.boolean(), async (todo, isKnown) => {
      expect(await isPreserved(todo, isKnown, steps)).toBe(true)
    }),
    // To look for fewer changes that do it would take longer than the test may.
    { numRuns: RUNS, endOnFailure: true },
  )
})

test('while a command is being started nothing is read: the processors are its', async () => {
  const space = new Workspace()
  build(space)
  const open = (home: string) => openContext({ cwd: space.dir, env: space.env, home, create: true })
  const [ctx, other] = [await open(space.home), await open(`${space.home}-other`)]
  let read = 0
  ctx.progress = ({ files }) => {
    read = files ?? 0
  }
  try {
    const preserved = new Preserved()
    preserved.start()
    const capture = captureLive(ctx, { preserved })
    // As long as it takes to read all of it.
    const { files } = await captureLive(other)
    expect(read).toBe(0)
    preserved.begin()
    await capture
    expect(read).toBe(files)
  } finally {
    closeContext(ctx)
    closeContext(other)
    space.remove()
  }
})

test('a file with many names that is changed by one after the other', async () => {
  const byName: Record<string, Step> = {
    write: (space, pick) => {
      const path = `d${1 + pick(DIRS - 1)}/hard`
      return { change: of([path]), act: () => writeFileSync(space.at(path), String(pick(1000))) }
    },
  }
  const todo = Array.from({ length: 12 }, (_, i) => ({ step: 'write', at: i * 977, pause: 0 }))
  for (let i = 0; i < 3; i++) expect(await isPreserved(todo, false, byName)).toBe(true)
})

test('one of the two names of a file goes before the other was looked at', async () => {
  const pairs: Record<string, Step> = {
    unlink: (space, pick) => {
      const path = `d${pick(DIRS)}/pair`
      return { change: of([path]), act: () => rmSync(space.at(path), { force: true }) }
    },
  }
  const todo = Array.from({ length: 30 }, (_, i) => ({ step: 'unlink', at: i * 977, pause: 0 }))
  for (const isKnown of [false, true]) expect(await isPreserved(todo, isKnown, pairs)).toBe(true)
})
