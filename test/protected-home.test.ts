/** Processes of a run cannot change Savepoint's own directory by accident; Savepoint itself can, inside a run as well. */
import { execFileSync } from 'node:child_process'
import { readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Savepoint } from '../src/index.ts'
import { probeTracers } from '../src/tracers/select.ts'
import { cliCommand } from './support/cli.ts'
import { canMount, gated } from './support/machine.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

const { works, detail } = probeTracers().find(({ name }) => name === 'seccomp')!
const title = works ? 'inside a run' : `inside a run (skipped: ${detail})`

let space: Workspace
let savepoint: Savepoint
beforeEach(async () => {
  space = new Workspace('work', { SAVEPOINT_TRACER: 'seccomp' })
  space.write('a', 'a1\n')
  savepoint = await space.open()
})
afterEach(() => space.remove())

const names = () => execFileSync('find', [space.home, '-printf', '%P %y\\n'], { encoding: 'utf8' }).split('\n').sort()
const run = (script: string) => savepoint.run({ command: ['sh', '-c', script] })

describe.skipIf(!works)(title, () => {
  it('rm -rf of it fails with EACCES, and everything is there', async () => {
    await run('echo first > a')
    const before = names().filter(name => !name.includes('runs/') && !name.includes('sqlite-'))
    const { exitCode } = await run('rm -rf "$SAVEPOINT_HOME" 2> said; echo second > a; exit 7')
    expect([exitCode, space.read('said')]).toEqual([7, expect.stringMatching(/: Permission denied\n/)])
    expect(names()).toEqual(expect.arrayContaining(before))
    expect((await savepoint.verify()).problems).toEqual([])
    await savepoint.undo()
    expect(space.read('a')).toBe('first\n')
  })

  it('whatever way is taken: another name for it, a descriptor, the directory itself, attributes', async () => {
    symlinkSync(space.home, space.at('link'))
    space.sh('mkdir beside')
    const ways = [
      'echo x > link/new',
      'cd link && echo x > store/format.json',
      'mv "$SAVEPOINT_HOME" gone',
      'mv a "$SAVEPOINT_HOME/a"',
      'mv "$SAVEPOINT_HOME/store" .',
      'ln a link/a',
      'ln -s a link/s',
      'mkdir link/d',
      'chmod 777 "$SAVEPOINT_HOME"',
      'touch link/store/format.json',
      'truncate -s 0 link/store/format.json',
      'python3 -c "import os; os.fchmod(os.open(\'link\', os.O_RDONLY), 0o755)"',
      'cd "$SAVEPOINT_HOME/../work/beside/.." && rm link/store/format.json',
    ]
    const script = ways.map((way, i) => `(${way}) 2>> said || echo ${i} >> refused`).join('\n')
    await run(script)
    expect(space.read('refused')!.trim().split('\n')).toEqual(ways.map((_, i) => String(i)))
    expect(readdirSync(space.home)).not.toContain('new')
    expect(space.read('said')!.match(/denied/g)!.length).toBe(ways.length)
  })

  for (const target of ['bound/work', 'real/work'])
    gated(canMount, 'mount', `by either path where it is mounted at a second place, in ${target}`, () => {
      const cli = cliCommand.map(word => `'${word}'`).join(' ')
      const destroy = 'rm -rf "$SAVEPOINT_HOME/store" ../../real/home/store ../../bound/home/store; echo second > a'
      const lines = [
        'mkdir -p real/work bound; mount --bind real bound; export SAVEPOINT_HOME="$PWD/bound/home"',
        `cd ${target}; echo first > a; ${cli} run -q -- sh -c '${destroy}' 2> ../said; cat a; ${cli} undo -q; cat a`,
      ]
      const isolated = ['-m', 'sh', '-ec', lines.join('\n')]
      expect(execFileSync('unshare', isolated, { cwd: space.dir, env: space.env, encoding: 'utf8' })).toBe(
        'second\nfirst\n',
      )
      expect(space.read('real/said')!.match(/denied/g)!.length).toBeGreaterThanOrEqual(3)
    })

  it('it can be read, and what lies beside it is no business of ours', async () => {
    const { exitCode } = await run('cat "$SAVEPOINT_HOME/store/format.json" > copy && echo x > "$SAVEPOINT_HOME-2"')
    expect([exitCode, space.read('copy')]).toEqual([0, expect.stringContaining('{')])
  })

  it('our own commands work there: snapshot, status, and a run in the run', async () => {
    const cli = cliCommand.map(word => `'${word}'`).join(' ')
    const inner = `echo two > a; ${cli} snapshot --label inner && env -u SAVEPOINT_RUN ${cli} status`
    const { exitCode } = await run(
      `{ ${inner}; } > said 2>&1 && ${cli} run --tracer auto -- sh -c 'echo three > a' >> said 2>&1`,
    )
    expect([exitCode, space.read('said')]).toEqual([0, expect.stringMatching(/snap_/)])
    expect(savepoint.read('inner', 'a').toString()).toBe('two\n')
    expect(space.read('a')).toBe('three\n')
  })

  it('what our own commands start is not trusted', async () => {
    const cli = cliCommand.map(word => `'${word}'`).join(' ')
    await run(`${cli} run --tracer none -- sh -c 'rm -rf "$SAVEPOINT_HOME/store"' 2> said`)
    expect(space.read('said')).toMatch(/Permission denied/)
    expect(readdirSync(join(space.home, 'store')).length).toBeGreaterThan(0)
  })

  gated(canDropPrivilege, 'setpriv', 'the same for an ordinary user', async () => {
    const command = ['sh', '-c', 'rm -rf "$SAVEPOINT_HOME" 2> said; exit 7']
    const { results } = await runAsUser(space, [['run', { command }]])
    expect([results?.[0], space.read('said')]).toEqual([
      expect.objectContaining({ exitCode: 7 }),
      expect.stringMatching(/: Permission denied\n/),
    ])
  })
})
