/** What a scoped rollback or a three-way undo must not touch, over random trees and random mischief. */
import { mkdirSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { showPath } from '../src/index.ts'
import { fullImageOf } from './support/full-image.ts'
import { buildOps, changeOps } from './support/tree-arbitrary.ts'
import { differences } from './support/tree-image.ts'
import { applyOps } from './support/tree-ops.ts'
import { inWorkspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 25)
type Image = Map<string, string>

const isWithin = (path: string, dir: string) => path === dir || path.startsWith(`${dir}/`)
const isDir = (line: string | undefined) => line?.startsWith('dir ') ?? false
const ancestorsOf = (path: string) =>
  path.split('/').flatMap((_, i, parts) => (i === 0 ? [] : [parts.slice(0, i).join('/')]))

/** What has taken the place of a directory above `path` is not the rollback's to remove: it is left alone. */
const blockedBy = (path: string, before: Image, now: Image) =>
  before.has(path)
    ? ancestorsOf(path).find(dir => isDir(before.get(dir)) && now.has(dir) && !isDir(now.get(dir)))
    : undefined

/** The image that a rollback of `scope` to `before` must give, and what it must report as left alone. */
function expected(before: Image, now: Image, scope: string[]): { image: Image; leftAlone: Set<string> } {
  const image = new Map(now)
  const leftAlone = new Set<string>()
  for (const part of scope) {
    const blocker = blockedBy(part, before, now)
    if (blocker !== undefined) {
      leftAlone.add(blocker)
      continue
    }
    for (const path of now.keys()) if (isWithin(path, part)) image.delete(path)
    for (const [path, line] of before) if (isWithin(path, part)) image.set(path, line)
    if (before.has(part)) for (const dir of ancestorsOf(part)) if (!image.has(dir)) image.set(dir, before.get(dir)!)
  }
  return { image, leftAlone }
}

// No hard links here: what is done to one name of a file is done to the others, wherever they are.
test('a rollback of paths changes those paths only, and undo takes exactly that back', async () => {
  const mix = { hardLinks: false }
  await fc.assert(
    fc.asyncProperty(
      buildOps(mix),
      changeOps(mix),
      fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
      (build, change, picks) =>
        inWorkspace(async (ws, sp) => {
          applyOps(ws.dir, build)
          const before = fullImageOf(ws.dir)
          const snapshot = await sp.snapshot()
          applyOps(ws.dir, change)
          const changed = fullImageOf(ws.dir)
          const known = [...new Set([...before.keys(), ...changed.keys()])].filter(path => path !== '')
          if (known.length === 0) return
          const picked = [...new Set(picks.map(pick => known[pick % known.length]!))]
          const scope = picked.filter(path => !picked.some(other => other !== path && isWithin(path, other)))

          const want = expected(before, changed, scope)
          const rolled = await sp.rollback(snapshot.id, { paths: scope.map(showPath) })
          expect(differences(want.image, fullImageOf(ws.dir))).toEqual([])
          expect(new Set(rolled.leftAlone.map(({ path }) => path))).toEqual(want.leftAlone)
          if (rolled.operation) await sp.undo()
          expect(differences(changed, fullImageOf(ws.dir))).toEqual([])
          expect((await sp.verify()).problems).toEqual([])
        }),
    ),
    { numRuns: RUNS },
  )
})

test('undo and redo keep the edits that were made elsewhere since', async () => {
  await fc.assert(
    fc.asyncProperty(buildOps(), buildOps(), changeOps(), changeOps(), (theirs, mine, change, later) =>
      inWorkspace(async (ws, sp) => {
        const [x, y] = [ws.at('x'), ws.at('y')]
        mkdirSync(x)
        mkdirSync(y)
        applyOps(x, theirs)
        applyOps(y, mine)
        const { id } = await sp.snapshot()
        const original = fullImageOf(ws.dir)
        applyOps(x, change)
        const changed = fullImageOf(ws.dir)
        const rolled = await sp.rollback(id)
        if (!rolled.operation) return
        applyOps(y, later)
        const edited = fullImageOf(ws.dir)
        const withX = (image: Image): Image =>
          new Map([
            ...[...edited].filter(([path]) => !isWithin(path, 'x')),
            ...[...image].filter(([path]) => isWithin(path, 'x')),
          ])

        const undone = await sp.undo()
        expect(undone.restore?.leftAlone).toEqual([])
        expect(differences(withX(changed), fullImageOf(ws.dir))).toEqual([])
        await sp.redo()
        expect(differences(withX(original), fullImageOf(ws.dir))).toEqual([])
        expect((await sp.verify()).problems).toEqual([])
      }),
    ),
    { numRuns: RUNS },
  )
})
