/** `gc` and `verify` are about the whole store, wherever they are said; and smaller truths about targets that are not where they were. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { tryLock } from '../src/store/file-lock.ts'
import { giveToUser, savepoint, savepointInShell, savepointJson, shellAsUser } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
})
afterEach(() => space.remove())

const anywhere = () => ({ cwd: space.base })
const timeline = () => join(space.home, 'timelines', savepointJson(space, ['status']).timeline)

it('gc and verify work where nothing is protected, and leave nothing there', () => {
  savepointJson(space, ['snapshot', '-m', 'good'])
  const tmp = join(space.base, 'tmp')
  mkdirSync(tmp)
  const elsewhere = { ...anywhere(), env: { ...space.env, TMPDIR: tmp } }
  expect(savepoint(space, ['gc'], elsewhere)).toMatchObject({ status: 0, stderr: '' })
  expect(savepointJson(space, ['verify'], elsewhere)).toMatchObject({ snapshots: 1, problems: [] })
  expect(savepoint(space, ['verify', '--repair'], elsewhere)).toMatchObject({ status: 0, stderr: '' })
  expect(readdirSync(join(space.home, 'timelines'))).toHaveLength(1)
  expect(readdirSync(tmp)).toEqual([])
  // A directory that is named must be protected.
  expect(savepoint(space, ['gc', '-t', space.base], elsewhere).status).toBe(10)
  rmSync(join(space.home, 'store', 'index.sqlite'))
  expect(savepoint(space, ['verify', '--repair'], elsewhere).status).toBe(0)
  expect(savepoint(space, ['rollback', 'good']).status).toBe(0)
})

it('what gc forgets from elsewhere stands in the history that it is missing from', async () => {
  const opened = await space.open()
  await opened.snapshot({ label: 'good' })
  space.write('a', 'a2')
  await opened.snapshot()
  await opened.delete(['good'])
  opened.close()
  const later = await space.open({
    ...anywhere(),
    create: false,
    wholeStore: true,
    now: () => Date.now() + 8 * 86_400_000,
  })
  expect((await later.gc()).forgottenSnapshots).toBe(1)
  later.close()
  const operations = (await space.open()).operations()
  expect(operations.at(-1)).toMatchObject({ kind: 'gc', summary: expect.stringMatching(/^gc: 1 snapshots forgotten/) })
})

it('the same for an ordinary user', () => {
  giveToUser(space)
  const script = `${savepointInShell} snapshot -q; cd /; ${savepointInShell} gc; ${savepointInShell} verify -q`
  expect(shellAsUser(space, script)).toMatchObject({ status: 0, stderr: '' })
})

it('inside of a run verify looks, and does not repair, whatever the environment says', () => {
  const script = `${savepointInShell} verify -q; echo $?
    ${savepointInShell} verify --repair; echo $?
    cd ..; unset SAVEPOINT_RUN; ${savepointInShell} verify --repair; ${savepointInShell} gc; echo $?`
  const { stdout, stderr } = savepoint(space, ['run', '-q', '--', 'sh', '-c', script])
  expect(stdout).toBe('0\n1\n1\n')
  expect(stderr.match(/Cannot (repair|collect garbage): this is a process of run_/g)).toHaveLength(3)
})

it('after an import into a new directory, status says what is there', () => {
  savepointJson(space, ['snapshot', '-m', 'good'])
  expect(savepoint(space, ['export', 'good', '../good.tar']).status).toBe(0)
  mkdirSync(join(space.base, 'new'))
  const cwd = join(space.base, 'new')
  expect(savepoint(space, ['import', '../good.tar'], { cwd }).status).toBe(0)
  const { stdout } = savepoint(space, ['status'], { cwd })
  expect(stdout).not.toContain('No snapshot yet')
  expect(stdout).toMatch(/1 snapshot,.*\nThe live files are in no snapshot yet\. Take one: .*\n.*rollback SNAP/)
})

it('-t through a link to where the directory above the target was finds it', () => {
  space.write('sub/f')
  const sub = { cwd: space.at('sub') }
  const { id } = savepointJson(space, ['snapshot'], sub)
  const link = join(space.base, 'link')
  symlinkSync(space.dir, link)
  renameSync(space.dir, `${space.dir} moved`)
  // Before it is known where it went, and after.
  for (const named of [join(link, 'sub'), join(`${space.dir} moved`, 'sub'), join(link, 'sub')])
    expect(savepointJson(space, ['snapshots', '-t', named], anywhere())).toMatchObject([{ id }])
})

it('the hint of a refused gc is about the directory whose timeline it is', () => {
  savepointJson(space, ['snapshot', '-m', 'good'])
  const other = join(space.base, 'other')
  mkdirSync(other)
  savepointJson(space, ['snapshot'], { cwd: other })
  const directory = timeline()
  rmSync(join(directory, 'timeline.sqlite'))
  expect(savepoint(space, ['verify', '--repair', '-q'], { cwd: other }).status).toBe(0)
  const { status, stderr } = savepoint(space, ['gc'], { cwd: other })
  expect([status, stderr]).toEqual([14, expect.stringContaining(`\`savepoint log -t ${space.dir}\` shows`)])
  expect(existsSync(join(directory, 'timeline.sqlite.damaged'))).toBe(true)
})

it('who only looks does not wait while the store is checked, which frees nothing, but while it is collected', async () => {
  savepointJson(space, ['snapshot'])
  space.write('a', 'a2')
  space.env.SAVEPOINT_LOCK_WAIT_MS = '0'
  const lookWhile = async (purpose: string) => {
    using _ = tryLock(join(space.home, 'store', 'gc.lock'), 'exclusive', purpose)!
    const other = await space.open()
    try {
      return (await other.status()).counts
    } finally {
      other.close()
    }
  }
  expect(await lookWhile('verify')).toEqual({ added: 0, modified: 1, deleted: 0 })
  await expect(lookWhile('collect garbage')).rejects.toThrow('is at work (collect garbage)')
})
