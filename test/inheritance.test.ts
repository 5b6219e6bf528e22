/** What the caller hands down reaches the command as without us: descriptors from 3 on, signals that are ignored, variables of any name. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { probeTracers } from '../src/tracers/select.ts'
import { checkout } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

const launcher = `'${join(checkout, 'savepoint')}'`
const working = probeTracers().filter(({ works }) => works)

let space: Workspace
beforeEach(() => {
  space = new Workspace()
  space.write('a', 'a1')
})
afterEach(() => space.remove())

describe.each(working.map(({ name }) => name))('tracer %s', tracer => {
  const prefix = `${launcher} --quiet run --tracer ${tracer} --`
  const shell = (script: string) =>
    spawnSync('sh', ['-c', script], { cwd: space.dir, env: space.env, encoding: 'utf8', timeout: 60_000 })

  it('signals that are ignored stay ignored, and no others', () => {
    const script = (before: string) => `trap '' HUP USR2; exec ${before} grep SigIgn /proc/self/status`
    const without = shell(script(''))
    expect(without.stdout).toMatch(/^SigIgn:\t0*801\n$/)
    expect(shell(script(prefix))).toMatchObject({ status: 0, stdout: without.stdout, stderr: '' })
    expect(shell(`exec ${prefix} grep SigIgn /proc/self/status`).stdout).toMatch(/^SigIgn:\t0+\n$/)
  })

  it('descriptors: the same ones, and what they lead to', () => {
    const script = (before: string) => `exec ${before} sh -c 'ls /proc/self/fd; echo three >&3; cat <&7' 3>three 7<a`
    const without = shell(script(''))
    expect(without.stdout).toMatch(/a1$/)
    expect(shell(script(prefix))).toMatchObject({ status: 0, stdout: without.stdout, stderr: '' })
    expect(space.read('three')).toBe('three\n')
  })

  it('none of ours keeps a pipe open that the command has closed', async () => {
    const daemon = 'setsid sh -c "echo \\$\\$ > pid; exec sleep 60" 3>&- 4>&- >/dev/null 2>&1 </dev/null'
    const script = `{ ${prefix} sh -c '(${daemon} &); echo last >&3' 3>&1 >/dev/null 2>&1; } | cat; echo $?`
    expect(shell(script)).toMatchObject({ stdout: 'last\n0\n' })
    await vi.waitUntil(() => space.read('pid')?.endsWith('\n'), { timeout: 60_000 })
    process.kill(Number(space.read('pid')))
  })

  it('standard input that is closed', () => {
    const script = (before: string) => `exec ${before} sh -c 'cat; echo $?; ls /proc/self/fd' <&-`
    const without = shell(script(''))
    expect(without).toMatchObject({
      stdout: expect.stringMatching(/^1\n/),
      stderr: expect.stringMatching(/descriptor/),
    })
    expect(shell(script(prefix))).toMatchObject({ status: 0, stdout: without.stdout, stderr: without.stderr })
  })

  it('how many files may be open, which Node raises', () => {
    expect(shell(`ulimit -Sn 200; ${prefix} sh -c 'ulimit -Sn; ulimit -Hn'`).stdout).toBe(
      shell('echo 200; ulimit -Hn').stdout,
    )
  })

  it('the variable that names them is not handed down', () => {
    expect(shell(`trap '' HUP; ${prefix} env`).stdout).not.toMatch(/SAVEPOINT_(INHERITED|PROBED)/)
  })

  it('nohup: the command and we go on when the terminal is closed', async () => {
    space.sh('mkfifo ready go')
    const inner = `'echo > ready; read line < go; echo done > a; exit 4'`
    const script = `trap '' HUP; exec ${prefix} sh -c ${inner}`
    const child = spawn('sh', ['-c', script], { cwd: space.dir, env: space.env, stdio: 'ignore' })
    const ended = once(child, 'exit')
    space.sh('read line < ready')
    child.kill('SIGHUP')
    space.sh('echo > go')
    expect(await ended).toEqual([4, null])
    const savepoint = await space.open({ create: false })
    expect(savepoint.runs()[0]).toMatchObject({ exitCode: 4, after: expect.any(String) })
  })
})

it('variables of whatever name: no identifiers, which a shell drops, functions that bash exports, those that a script may use', () => {
  const odd = {
    root: '/r',
    node: 'n',
    flags: 'f',
    self: 's',
    link: 'l',
    helper: 'h',
    'a.b': 'c\nd=e',
    'x-y': '',
    '1z': '1',
    'BASH_FUNC_f%%': '() {  echo hi\n}',
  }
  const command = ['--quiet', 'run', '--', 'bash', '-c', 'f; env -0']
  const { stdout } = spawnSync(join(checkout, 'savepoint'), command, {
    cwd: space.dir,
    env: { ...space.env, ...odd },
    encoding: 'utf8',
  })
  const [first, ...lines] = stdout.split('\n')
  const known = new Set(lines.join('\n').split('\0'))
  expect([first, Object.entries(odd).filter(([name, value]) => !known.has(`${name}=${value}`))]).toEqual(['hi', []])
})

it('standard input that is closed, where nothing is recorded', () => {
  const script = (before: string) => `exec ${before} sh -c 'cat; echo $?; ls /proc/self/fd' <&-`
  const run = (before: string) => {
    const env = { ...space.env, SAVEPOINT_HOME: '/dev/null/nowhere' }
    return spawnSync('sh', ['-c', script(before)], { cwd: space.dir, env, encoding: 'utf8', timeout: 60_000 }).stdout
  }
  expect(run(`${launcher} run --unprotected --`)).toBe(run(''))
})

it.each([['run'], ['record', '-o', '../bundle']])(
  'values that are no text, and functions that bash exports: %s',
  (...verb) => {
    const command = `f() { printf '%s' "$1"; }; export -f f; export odd=$(printf 'a\\xff\\xfeb'); "$@"`
    const words = [join(checkout, 'savepoint'), '--quiet', ...verb, '--', 'bash', '-c', 'f "$odd"']
    const { stdout } = spawnSync('bash', ['-c', command, 'bash', ...words], { cwd: space.dir, env: space.env })
    expect(stdout.toString('latin1')).toBe('a\xff\xfeb')
  },
)
