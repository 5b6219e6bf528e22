/** On a terminal: progress, colours, a pager, questions and Ctrl-C. In pipes: none of it. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { builtCommand, savepoint, savepointJson } from './support/built-cli.ts'
import { hasTerminal, onTerminal, type Step, type TerminalResult } from './support/terminal.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const ESC = '\x1b['
const ERASED = '\r\x1b[K'
const title = hasTerminal ? 'on a terminal' : 'on a terminal (skipped: needs python3 for a pseudo-terminal)'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a.txt', 'one\n')
})
afterEach(() => space.remove())

/** `settings`: words for env(1), which win over those of the terminal. */
const typed = (args: string[], steps: Step[] = [], settings: string[] = []) =>
  onTerminal(['env', ...settings, ...builtCommand, ...args], steps, { cwd: space.dir, env: space.env })

const PROGRESS_WAIT_MS = 300

/** Most of it in a directory that a capture sees last. */
function makeMuch(): void {
  for (let i = 0; i < 120; i++) space.write(i < 20 ? `much/${i}` : `much/deep/${i}`, noise(2_000_000, i))
}

/** However fast the machine is: the capture of `makeMuch` is in its midst when a progress line has waited for long enough. */
async function typedLong(args: string[], steps: Step[] = []): Promise<TerminalResult> {
  const go = join(space.base, 'go')
  const timer = setTimeout(() => writeFileSync(go, ''), 4 * PROGRESS_WAIT_MS)
  try {
    return await typed(args, steps, [`SAVEPOINT_FAILPOINT=capture:walking#2~${go}`])
  } finally {
    clearTimeout(timer)
    rmSync(go, { force: true })
  }
}

describe.skipIf(!hasTerminal)(title, () => {
  it('long work shows how far it is and takes the line away; in a pipe, with -q and --json it is silent', async () => {
    makeMuch()
    const { output, status } = await typedLong(['snapshot', '-m', 'much'])
    expect(status).toBe(0)
    expect(output).toMatch(/\rcapturing {2}.*\d+(\/\d+)? files {2}\d.*B.* [KMG]?B\/s/)
    expect(output.slice(output.lastIndexOf(ERASED))).toMatch(/snap_\w+ \(much\) {2}\+240 MB {2}121 files, 240 MB\r\n$/)
    const piped = savepoint(space, ['diff', '--name-only', '-q'])
    expect(piped).toMatchObject({ status: 0, stdout: '', stderr: '' })
    space.sh('rm -r much')
    const back = savepoint(space, ['rollback', 'much'])
    expect(back).toMatchObject({ status: 0, stderr: '' })
    expect(back.stdout).not.toContain('\x1b')
  })

  it('Ctrl-C during a capture: it stops at a safe point, 130, no snapshot, and the next one works', async () => {
    savepoint(space, ['snapshot', '-m', 'first'])
    makeMuch()
    const ctrlC = { wait: 'capturing', type: '\x03' }
    const { output, status, complete } = await typedLong(['snapshot', '-m', 'never'], [ctrlC])
    expect({ status, complete, output }).toMatchObject({ status: 130, complete: true })
    expect(output).toContain('stopping at the next safe point; Ctrl-C again stops at once')
    expect(output).toMatch(/savepoint: .*[cC]ancelled/)
    expect(savepointJson(space, ['snapshots'])).toHaveLength(1)
    expect(savepoint(space, ['verify']).status).toBe(0)
    expect(savepoint(space, ['snapshot']).status).toBe(0)
  })

  it('colours on a terminal only; NO_COLOR and --no-color turn them off, FORCE_COLOR on', async () => {
    savepoint(space, ['snapshot'])
    space.write('a.txt', 'two\n')
    const plain = ['PAGER=cat']
    for (const args of [['log'], ['diff'], ['status'], ['snapshots'], ['diff', '--stat'], ['show']]) {
      const coloured = await typed(args, [], ['-u', 'NO_COLOR', ...plain])
      expect(coloured.output, args.join(' ')).toContain(ESC)
      expect((await typed(args, [], plain)).output, args.join(' ')).not.toContain(ESC)
      expect(savepoint(space, args).stdout).not.toContain(ESC)
    }
    expect((await typed(['--no-color', 'log'], [], ['-u', 'NO_COLOR', ...plain])).output).not.toContain(ESC)
    expect((await typed(['log'], [], ['-u', 'NO_COLOR', 'TERM=dumb'])).output).not.toContain(ESC)
    expect(savepoint(space, ['log'], { env: { ...space.env, FORCE_COLOR: '1' } }).stdout).toContain(ESC)
    const run = await typed(['run', '--', 'sh', '-c', 'echo x > new'], [], ['-u', 'NO_COLOR'])
    expect(run.output).toContain(ESC)
  })

  it('long results go through the pager: $SAVEPOINT_PAGER, $PAGER, less; --no-pager and pipes do without', async () => {
    savepoint(space, ['snapshot'])
    space.write('a.txt', Array.from({ length: 200 }, (_, i) => `line ${i}`).join('\n'))
    const marking = ["PAGER=sed 's/^/PAGER|/'"]
    for (const args of [['diff'], ['log'], ['show'], ['changes']]) {
      expect((await typed(args, [], marking)).output, args.join(' ')).toMatch(/^PAGER\|/)
    }
    expect((await typed(['diff', '--no-pager'], [], marking)).output).not.toContain('PAGER|')
    expect((await typed(['diff'], [], [...marking, "SAVEPOINT_PAGER=sed 's/^/OURS|/'"])).output).toMatch(/^OURS\|/)
    expect((await typed(['diff'], [], ['PAGER=no-such-pager'])).output).toContain('+line 199')
    expect(savepoint(space, ['diff'], { env: { ...space.env, PAGER: "sed 's/^/PAGER|/'" } }).stdout).not.toContain(
      'PAGER|',
    )
    const less = await typed(['diff'], [{ wait: 'line 10[\\s\\S]*:', type: 'q' }])
    expect({ status: less.status, complete: less.complete }).toEqual({ status: 0, complete: true })
    expect(less.output).not.toContain('line 199')
    // A pager that is left early is no error, nor is a reader that goes away.
    expect((await typed(['diff'], [], ['PAGER=head -1'])).status).toBe(0)
    expect(space.sh(`${builtCommand.map(word => `'${word}'`).join(' ')} diff | head -1`)).toMatch(/^diff --git/)
  })

  it('purge asks: no leaves everything (130), yes removes', async () => {
    space.write('.env', 'TOKEN=abcdefgh\n')
    savepoint(space, ['snapshot'])
    const question = 'Remove every version of \\.env from all snapshots\\? This cannot be undone\\. \\[y/N\\] '
    const no = await typed(['purge', '.env'], [{ wait: question, type: 'n\n' }])
    expect(no).toMatchObject({ status: 130, complete: true })
    expect(no.output).toContain('Cannot purge .env: cancelled; nothing was changed')
    expect((await typed(['purge', '.env'], [{ wait: question, type: '\x03' }])).status).toBe(130)
    expect(savepoint(space, ['show', 'HEAD', '.env']).stdout).toBe('TOKEN=abcdefgh\n')
    const yes = await typed(['purge', '.env'], [{ wait: question, type: 'y\n' }])
    expect(yes).toMatchObject({ status: 0, output: expect.stringContaining('Purged .env: 1 version in 1 snapshot') })
    expect(savepoint(space, ['show', 'HEAD', '.env']).status).toBe(12)
  })

  it('run: the terminal is the command’s; Ctrl-C reaches it, the final snapshot is taken, undo works', async () => {
    const program = join(space.base, 'program.sh')
    writeFileSync(
      program,
      `test -t 0 && test -t 1 && test -t 2 && echo ALL-TTY
trap 'echo cleaned > cleaned; exit 5' INT
echo half > a.txt; echo READY; while :; do sleep 0.05; done`,
    )
    const stopped = await typed(['run', '--', 'sh', program], [{ wait: 'READY', type: '\x03' }])
    expect(stopped).toMatchObject({ status: 5, complete: true })
    expect(stopped.output).toContain('ALL-TTY')
    expect(stopped.output).toMatch(
      /: exit 5, .*; 1 added, 1 modified\r\n {2}M a\.txt\r\n {2}A cleaned\r\nTo undo: savepoint undo\r\n$/,
    )
    expect(savepointJson(space, ['runs'])[0]).toMatchObject({ exit_code: 5, after: expect.stringMatching(/^snap_/) })
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect([space.read('a.txt'), existsSync(space.at('cleaned'))]).toEqual(['one\n', false])
  })

  it('run in an interactive shell: a command that dies of Ctrl-C is 130 for the shell, too', async () => {
    const line = builtCommand.map(word => `'${word}'`).join(' ')
    const { complete } = await onTerminal(
      ['sh', '-i'],
      [
        // It waits by itself: a shell that is just starting a program loses the key, also without us.
        { wait: '\\$ ', type: `${line} run -- sh -c 'echo half > a.txt; echo RE''ADY; read line'\n` },
        { wait: 'READY\\r\\n', type: '\x03' },
        { wait: 'To undo', type: `echo "code $?" > '${join(space.base, 'code')}'; exit\n` },
      ],
      { cwd: space.dir, env: space.env },
    )
    expect(complete).toBe(true)
    expect(readFileSync(join(space.base, 'code'), 'utf8')).toBe('code 130\n')
    expect(savepoint(space, ['undo']).status).toBe(0)
    expect(space.read('a.txt')).toBe('one\n')
  })
})
