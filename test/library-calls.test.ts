/** The library against programs that are wrong: each slip is a SavepointError that names it. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { open, type Savepoint } from '../src/index.ts'
import { runCli } from './support/cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace()
  space.write('a', 'one')
  savepoint = await space.open()
})
afterEach(() => space.remove())

// biome-ignore lint/suspicious/noExplicitAny: what a program in plain JavaScript may do
const loose = (): any => savepoint
const usage = (message: string | RegExp) => ({ code: 'usage', message: expect.stringMatching(message) })
const verbs = () => Object.keys(savepoint).filter(name => typeof loose()[name] === 'function' && name !== 'close')

/** What a call ends with, thrown or rejected. */
async function failureOf(work: () => unknown): Promise<unknown> {
  try {
    await work()
  } catch (error) {
    return error
  }
  return undefined
}

it('after close: every method says so, and close may be called again', async () => {
  await savepoint.snapshot()
  savepoint.close()
  savepoint.close()
  expect(verbs().length).toBeGreaterThan(30)
  for (const verb of verbs())
    expect([verb, await failureOf(() => loose()[verb]('a', 'a'))]).toEqual([
      verb,
      expect.objectContaining(usage(`^Cannot call ${verb}: this Savepoint is closed$`)),
    ])
  expect(savepoint.target).toBe(space.dir)
})

describe('arguments of a wrong type', () => {
  it('no method answers them with anything but a SavepointError', async () => {
    for (const verb of verbs()) {
      for (const args of [[5], [null], [['a', 5]], [Symbol('x')]]) {
        const error = await failureOf(() => loose()[verb](...args, ...args))
        expect([verb, error === undefined || (error as Error).name]).toEqual([
          verb,
          expect.toBeOneOf([true, 'SavepointError']),
        ])
      }
    }
  })

  it('are named; what returns a promise rejects, what does not throws', async () => {
    await expect(loose().rollback(5)).rejects.toMatchObject(
      usage('^Cannot call rollback: argument 1 must be a string$'),
    )
    await expect(loose().delete('a')).rejects.toMatchObject(usage('argument 1 must be an array of strings$'))
    await expect(loose().snapshot({ label: 5 })).rejects.toMatchObject(usage('label must be a string$'))
    await expect(loose().prune({ keep: '5' })).rejects.toMatchObject(usage('keep must be a number$'))
    await expect(loose().undo('all')).rejects.toMatchObject(usage('its options must be an object$'))
    expect(() => loose().find()).toThrow('Cannot call find: argument 1 must be a string')
    await expect(open({ cwd: 5 } as never)).rejects.toMatchObject(usage('^Cannot call open: cwd must be a string$'))
  })

  it('an option that does not exist is not dropped; one of open() is said to be that', async () => {
    const signal = AbortSignal.abort()
    await expect(loose().snapshot({ signal })).rejects.toMatchObject({
      ...usage('it has no option "signal"$'),
      hint: 'open() takes signal, for all that follows. It takes: label, type, run, turn, onlyIfChanged',
    })
    await expect(loose().rollback('a', { dryrun: true })).rejects.toMatchObject(usage('no option "dryrun"$'))
    await expect(open({ cdw: space.dir } as never)).rejects.toMatchObject(usage('no option "cdw"$'))
    expect(savepoint.snapshots()).toEqual([])
    const stopped = await space.open({ signal })
    await expect(stopped.snapshot()).rejects.toMatchObject({ code: 'cancelled' })
  })
})

it('a process that is killed while it asks leaves nothing for long', () => {
  const other = new Workspace()
  try {
    const env = { ...other.env, TMPDIR: other.base }
    const index = fileURLToPath(new URL('../src/index.ts', import.meta.url))
    const script = `const { open } = await import('${index}'); await open({ provisional: true }); process.kill(process.pid, 'SIGKILL')`
    const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]
    const { signal, stderr } = spawnSync(process.execPath, flags, { cwd: other.dir, env, encoding: 'utf8' })
    expect([signal, stderr]).toEqual(['SIGKILL', ''])
    const left = () => readdirSync(other.base).filter(name => name.startsWith('savepoint-asking-'))
    expect(left()).toHaveLength(1)
    expect(runCli(other, ['coverage', '.'], { env }).status).toBe(0)
    expect(left()).toEqual([])
  } finally {
    other.remove()
  }
})
