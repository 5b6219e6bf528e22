/** X3 for traces: what was purged is gone from command lines and events too. And traces that nothing belongs to do not pile up. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { hidePath } from '../src/model/hide-words.ts'
import { runCli } from './support/cli.ts'
import { finishVerbs, runVerbs, startVerbs } from './support/engine-process.ts'
import { holdsBytes } from './support/raw-scan.ts'
import { line, useTracedRuns } from './support/traced-runs.ts'
import type { Workspace } from './support/workspace.ts'

// Nothing that a pattern of tracing.redact knows.
const SECRET = 'xq7-vulture-93'
const DAY = 24 * 60 * 60 * 1000

let space: Workspace
let savepoint: Savepoint
const { run, traced, jsonl } = useTracedRuns((made, opened) => {
  space = made
  savepoint = opened
})

const leaks = () => holdsBytes(space.home, Buffer.from(SECRET))
const lines = () => traced().map(line)

describe('purge PATH', () => {
  it('leaves no byte of it in command lines, run, snapshots, operations and exec.jsonl', async () => {
    await run(`sh -c 'echo ${SECRET} > .env'; cat .env >/dev/null; ls a >/dev/null`)
    expect(leaks().length).toBeGreaterThan(1)
    expect(jsonl()).toContain(SECRET)
    const { commands, events } = await savepoint.purge('.env')
    // The command of the run is also its first execution.
    expect([commands, events]).toEqual([4, 1])
    expect(leaks()).toEqual([])
    expect(lines()).toEqual(['sh -c [purged]', 'sh -c [purged]', 'cat [purged]', 'ls a'])
    expect(savepoint.runs()[0]!.command).toEqual(['sh', '-c', '[purged]'])
    expect(savepoint.operations()[0]!.summary).toMatch(/^run_\w+: \[purged\]$/)
    expect(savepoint.why('.env').causes).toEqual([])
    expect(jsonl().match(/"type":"exec"/g)).toHaveLength(4)
    expect(jsonl().match(/"type":"exit"/g)).toHaveLength(4)
  })

  it('knows the path by every name that a command may have for it', () => {
    const hide = hidePath('/w/t', 'conf/.env')
    const isHidden = (word: string, cwd = '/w/t') => hide(['x', word], cwd)?.[1] === '[purged]'
    for (const word of [
      'conf/.env',
      './conf/.env',
      '/w/t/conf/.env',
      '--file=conf/.env',
      'cat "conf/.env" > x',
      'conf/.env:1',
    ])
      expect([word, isHidden(word)]).toEqual([word, true])
    expect(isHidden('.env', '/w/t/conf')).toBe(true)
    expect(isHidden('../conf/.env', '/w/t/src')).toBe(true)
    expect(hidePath('/w/t', 'conf')(['conf/deep/x'], '/w/t')).toEqual(['[purged]'])
    for (const word of ['conf/.env.local', 'my-conf/.env', 'other/conf/.env', '.env', 'conf', '/w/t2/conf/.env'])
      expect([word, isHidden(word)]).toEqual([word, false])
  })

  it('is done also when no snapshot has it, and says so when nothing has', async () => {
    space.write('.savepointignore', 'gone\n')
    await run(`echo ${SECRET} > gone; rm gone`)
    expect(await savepoint.purge('gone')).toMatchObject({ snapshots: 0, events: 2 })
    expect(leaks()).toEqual([])
    await expect(savepoint.purge('nothing')).rejects.toMatchObject({ code: 'path.unknown' })
    const { stdout } = await runCli(space, ['purge', 'a', '--yes'])
    expect(stdout).toMatch(/^Purged a: 1 version in \d snapshots?, .* freed\n/)
  })

  it.each(['purge:forgotten', 'purge:trace', 'gc:marked'])(
    'killed at %s: the next command completes it',
    async point => {
      await run(`echo ${SECRET} > .env`)
      await run('true')
      expect((await runVerbs(space, [['purge', '.env']], { failpoint: point })).signal).toBe('SIGKILL')
      savepoint = await space.open()
      expect(leaks()).toEqual([])
      expect(savepoint.runs()).toHaveLength(2)
    },
  )

  it('while a run goes on, whose later lines are not lost; and it says that once is not enough', async () => {
    // Later lines have an end of the earlier one: what is waited for is there then.
    const command = ['sh', '-c', `sh -c 'echo ${SECRET} > .env'; echo > ../ready; read go < ../go; ls a >/dev/null`]
    space.sh('mkfifo ../go ../ready')
    const child = startVerbs(space, [['run', { command }]])
    const ended = finishVerbs(child)
    await readFile(join(space.base, 'ready'))
    await vi.waitUntil(() => jsonl().includes('"type":"exit"'), { timeout: 60_000 })
    await savepoint.purge('.env')
    expect(space.notices).toContainEqual(
      expect.stringMatching(/^run_\w+ is still going: .* purge again when it has ended$/),
    )
    expect(jsonl()).not.toContain(SECRET)
    space.sh('echo > ../go')
    expect((await ended).error).toBeUndefined()
    expect(jsonl()).not.toContain(SECRET)
    expect(jsonl()).toContain('"argv":["ls","a"]')
    await savepoint.purge('.env')
    expect(leaks()).toEqual([])
  })
})

describe('purge --text', () => {
  it('hides a text in every command line, and only it', async () => {
    await run(`test ${SECRET} = x; true`)
    await run(`/bin/echo token ${SECRET} >/dev/null`)
    const said = await runCli(space, ['purge', '--text', '-', '--yes'], { input: `${SECRET}\n` })
    expect(said).toMatchObject({ status: 0, stdout: 'Hidden in 5 command lines\n' })
    expect(leaks()).toEqual([])
    expect(lines().at(-1)).toBe('/bin/echo token [purged]')
    await expect(savepoint.purgeText(SECRET)).rejects.toMatchObject({ code: 'path.unknown' })
    await expect(savepoint.purgeText('ab')).rejects.toMatchObject({ code: 'usage' })
    expect((await runCli(space, ['purge', 'a', '--text', 'long enough', '--yes'])).status).toBe(2)
  })
})

describe('old traces', () => {
  it('go with gc when no snapshot of the run is left and 30 days are over; doctor says what they take', async () => {
    await run('rm a')
    const old = savepoint.runs()[0]!
    space.write('a', 'a2\n')
    await run('echo 3 > b')
    const fresh = savepoint.runs()[1]!
    expect((await runCli(space, ['doctor'])).stdout).toMatch(/traces\s.*of 2 runs; the databases/)
    const later = Date.now() + 40 * DAY
    const laterOn = await space.open({ now: () => later })
    expect((await laterOn.gc()).forgottenTraces).toBe(0)
    await laterOn.delete([old.before!])
    await laterOn.delete([old.after!])
    const muchLater = await space.open({ now: () => later + 8 * DAY })
    const { forgottenTraces } = await muchLater.gc()
    expect(forgottenTraces).toBe(1)
    expect(muchLater.trace(old.id).executions).toEqual([])
    expect(muchLater.events({ run: old.id, kind: ['file', 'command'] }).events).toEqual([])
    expect(muchLater.trace(fresh.id).executions.length).toBe(1)
    expect(muchLater.operations().at(-1)!.summary).toContain('traces of 1 run removed')
    expect((await muchLater.gc()).forgottenTraces).toBe(0)
    expect((await runCli(space, ['doctor'])).stdout).toMatch(/of 1 run;/)
  })
})
