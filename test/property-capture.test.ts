/** What a capture takes from the last one is what it would find if it read everything again. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { buildOps, changeOps } from './support/tree-arbitrary.ts'
import { applyOps } from './support/tree-ops.ts'
import { inWorkspace, type Workspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 12)
/** So many that a change of some directories is a change of few. */
const DIRS = 120

/** Until files are older than the tick in which a capture reads everything again, so that the stat cache is believed. */
const age = () => pause(70)

function forgetCache(ws: Workspace): void {
  const timelines = join(ws.home, 'timelines')
  for (const id of readdirSync(timelines)) rmSync(join(timelines, id, 'statcache'), { force: true })
}

const git = '-c user.name=t -c user.email=t@t -c init.defaultBranch=main'

/** Besides random changes: of ignore files, of a repository, of hard links, of whole directories. */
const mischief = fc.record({
  ops: changeOps(),
  script: fc.constantFrom(
    'true',
    'echo "*.log" > wide/7/.gitignore',
    'echo "f*" > wide/9/.savepointignore; rm -f wide/7/.gitignore',
    'echo "wide/11/" > .gitignore',
    'rm -f .gitignore',
    `git ${git} init -q . 2>/dev/null; git add -f wide/1; git ${git} commit -qm x || true`,
    `git ${git} init -q wide/30/inner`,
    'mv wide/3 wide/3-moved; mkdir wide/3; mv wide/3-moved/* wide/3/',
    'rm -rf wide/5; mv wide/6 wide/5',
    'ln -f wide/20/f wide/21/linked; ln -f wide/20/f wide/40/linked',
    'rm -f wide/20/f',
    'mv wide/40 wide/41/deep 2>/dev/null || true',
    'chmod 700 wide/13; touch wide/14/new.log; rm -f wide/15/f',
  ),
})

test('F2 F8 G2 a capture with what the last one saw equals one that reads everything', async () => {
  await fc.assert(
    fc.asyncProperty(buildOps(), fc.array(mischief, { minLength: 1, maxLength: 4 }), (build, changes) =>
      inWorkspace(async (ws, sp) => {
        for (let i = 0; i < DIRS; i++) {
          mkdirSync(ws.at(`wide/${i}/sub`), { recursive: true })
          ws.write(`wide/${i}/f`, `${i}`)
          ws.write(`wide/${i}/sub/file.log`, `${i}`)
        }
        applyOps(ws.dir, build)
        await age()
        await sp.snapshot()
        for (const { ops, script } of changes) {
          applyOps(ws.dir, ops)
          ws.sh(`set +e; ${script}; true`)
          await age()
          const { root } = await sp.snapshot()
          // Twice: the second finds nothing changed.
          expect((await sp.snapshot()).root).toBe(root)
          forgetCache(ws)
          expect((await sp.snapshot()).root).toBe(root)
        }
      }),
    ),
    { numRuns: RUNS },
  )
})
