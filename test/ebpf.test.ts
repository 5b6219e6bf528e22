/** The ebpf driver: what it shares with the others is in tracer-contract.test.ts; here is what only it has. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeTracers } from '../src/tracers/select.ts'
import { cgroups, HelperProcess, helperFile } from './support/helper-process.ts'
import { gated, isRoot } from './support/machine.ts'
import { canDropPrivilege } from './support/without-privilege.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const probe = probeTracers().find(({ name }) => name === 'ebpf')!
const needs = isRoot ? `a kernel for ebpf: ${probe.detail}` : 'root'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-ebpf-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const traced = (script: string, ...options: string[]) =>
  new HelperProcess(['--driver', 'ebpf', ...options, '--', 'sh', '-c', script], { cwd: directory })
const lines = (helper: HelperProcess) => helper.executions.map(({ argv }) => argv.join(' '))

describe('the probe', () => {
  gated(isRoot && canDropPrivilege, 'root, setpriv', 'says to an ordinary user what is missing', () => {
    const powerless = ['--bounding-set=-all', '--inh-caps=-all', helperFile, '--driver', 'ebpf', '--probe']
    const { status, stdout } = spawnSync('setpriv', powerless, { encoding: 'utf8' })
    expect([status, stdout]).toEqual([1, 'this needs root, or CAP_BPF and CAP_PERFMON\n'])
  })

  gated(isRoot && canDropPrivilege, 'root, setpriv', 'needs CAP_BPF and CAP_PERFMON, both and nothing more', () => {
    const ask = (caps: string) =>
      spawnSync('setpriv', [
        `--bounding-set=-all,${caps}`,
        '--inh-caps=-all',
        helperFile,
        '--driver',
        'ebpf',
        '--probe',
      ]).status
    expect([ask('+bpf'), ask('+perfmon'), ask('+bpf,+perfmon')]).toEqual([1, 1, probe.works ? 0 : 1])
  })
})

describe('what is watched', () => {
  gated(probe.works, needs, 'the command and all below it, and nobody else', async () => {
    spawnSync('mkfifo', ['ready', 'go'], { cwd: directory })
    const helper = traced('/bin/true inside-1; echo > ready; read line < go; setsid sh -c "/bin/true inside-2"')
    const outside = 'read line < ready; for i in 1 2 3 4 5 6 7 8 9; do /bin/true outside; done; echo > go'
    execFileSync('sh', ['-c', outside], { cwd: directory })
    await helper.finished()
    expect(lines(helper).slice(1)).toEqual([
      '/bin/true inside-1',
      'setsid sh -c /bin/true inside-2',
      'sh -c /bin/true inside-2',
      '/bin/true inside-2',
    ])
    expect(helper.lost).toBe(0)
  })

  gated(probe.works, needs, 'two runs at once do not see each other', async () => {
    const script = (name: string) => `for i in $(seq 50); do /bin/true ${name}; done`
    const [one, two] = [traced(script('one')), traced(script('two'))]
    await Promise.all([one.finished(), two.finished()])
    for (const [helper, name] of [[one, 'one'] as const, [two, 'two'] as const])
      expect(lines(helper).filter(line => line.startsWith('/bin/true'))).toEqual(Array(50).fill(`/bin/true ${name}`))
  })

  gated(probe.works, needs, 'pids are those of the namespace that the helper lives in', async () => {
    const before = ['unshare', '--fork', '--pid', '--mount-proc']
    const script = 'true; echo $$ > own; sh -c "echo \\$\\$ > child; exit 6"; true'
    const helper = new HelperProcess(['--driver', 'ebpf', '--', 'sh', '-c', script], { cwd: directory, before })
    await helper.finished()
    const [own, child] = ['own', 'child'].map(name => Number(readFileSync(join(directory, name), 'utf8')))
    const [shell, inner] = helper.executions
    expect([shell!.pid, inner!.pid, inner!.ppid, shell!.ppid]).toEqual([own, child, own, 1])
    expect(own).toBeLessThan(10)
    expect(helper.endOf('sh -c echo')).toMatchObject({ code: 6 })
  })

  gated(probe.works && cgroups !== undefined, `${needs}, cgroup2`, 'a control group, and those below it', async () => {
    const group = join(cgroups!, `savepoint-test-${process.pid}`)
    const below = join(group, 'below')
    mkdirSync(below, { recursive: true })
    const runIn = (where: string, script: string) =>
      spawnSync('sh', ['-c', `echo $$ > ${where}/cgroup.procs; ${script}`], { cwd: directory })
    const helper = new HelperProcess(['--driver', 'ebpf', '--cgroup', group])
    try {
      await helper.started
      runIn(group, '/bin/true in-group; sh -c "/bin/false; exit 5"')
      runIn(below, '/bin/true in-group-below')
      runIn(cgroups!, '/bin/true outside')
      await helper.barrier()
      expect(lines(helper)).toEqual([
        '/bin/true in-group',
        'sh -c /bin/false; exit 5',
        '/bin/false',
        '/bin/true in-group-below',
      ])
      const [, shell, inner] = helper.executions
      expect(inner).toMatchObject({ parent: shell!.id, ppid: shell!.pid, depth: shell!.depth + 1 })
      expect([helper.endOf('sh -c'), helper.endOf('/bin/false')]).toMatchObject([{ code: 5 }, { code: 1 }])
    } finally {
      helper.child.kill('SIGTERM')
      await helper.finished()
      rmdirSync(below)
      rmdirSync(group)
    }
    expect(helper.child.exitCode).toBe(0)
  })
})

describe('what is told', () => {
  gated(
    probe.works,
    needs,
    'a ring that is too small: what was lost is counted, and the rest fits together',
    async () => {
      const sh = (script: string) => execFileSync('sh', ['-c', script], { cwd: directory })
      sh('mkfifo ready go done')
      const burst = 'for i in $(seq 400); do /bin/true $i; done; /bin/sh -c "exit 3"'
      const helper = traced(
        `echo > ready; read line < go; ${burst}; echo > done; read line < go`,
        '--ring-bytes',
        '4096',
      )
      sh('read line < ready')
      // Nobody empties the ring, and nobody waits for that.
      helper.child.kill('SIGSTOP')
      sh('echo > go; read line < done')
      helper.child.kill('SIGCONT')
      sh('echo > go')
      await helper.finished()
      const exits = helper.events.filter(event => event.type === 'exit')
      const known = new Set(helper.executions.map(({ id }) => id))
      expect(helper.lost).toBeGreaterThan(300)
      // Of each process there is at least one event, told or lost, and at most two.
      expect(helper.executions.length + exits.length + helper.lost).toBeGreaterThanOrEqual(403)
      expect(helper.executions.length + exits.length + helper.lost).toBeLessThanOrEqual(806)
      // Nothing speaks of an execution that nobody knows.
      expect(exits.filter(({ id }) => !known.has(id))).toEqual([])
      expect(helper.executions.filter(({ parent }) => parent !== 0 && !known.has(parent))).toEqual([])
    },
  )

  gated(
    probe.works,
    needs,
    'a directory whose path is too long: its end, and that the beginning is missing',
    async () => {
      const goDown = "import os\nfor i in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)"
      const helper = traced(`exec python3 -c "${goDown}\nos.execv('/bin/true', ['there'])"`)
      await helper.finished()
      const { cwd } = helper.executions.find(({ argv }) => argv[0] === 'there')!
      expect(cwd).toMatch(/^\/\.\.\.(\/d{200}){15,25}$/)
    },
  )

  gated(probe.works, needs, 'paths across mounts', async () => {
    const script =
      'mkdir m; mount -t tmpfs none m; mkdir m/in; cp /bin/true m/in/prog; cd m/in; ./prog; cd /; umount "$OLDPWD/.."'
    const helper = new HelperProcess(['--driver', 'ebpf', '--', 'sh', '-c', script], {
      cwd: directory,
      before: ['unshare', '--mount'],
    })
    await helper.finished()
    const place = join(execFileSync('realpath', [directory], { encoding: 'utf8' }).trim(), 'm/in')
    expect(helper.executions.find(({ argv }) => argv[0] === './prog')).toMatchObject({
      cwd: place,
      program: join(place, 'prog'),
    })
    expect(helper.executions.find(({ argv }) => argv[0] === 'umount')).toMatchObject({ cwd: '/' })
  })

  gated(probe.works, needs, 'times are those of the moment, not of the telling', async () => {
    const helper = traced('sleep 0.3; true')
    await helper.finished()
    const begun = helper.executions.find(({ argv }) => argv[0] === 'sleep')!.at
    const lasted = helper.endOf('sleep')!.at - begun
    expect(lasted).toBeGreaterThanOrEqual(300)
    expect(Math.abs(begun - Date.now())).toBeLessThan(60_000)
  })
})

describe('the compiled programs', () => {
  const clang = spawnSync('clang-14', ['--version']).status === 0

  gated(clang, 'a Linux distribution with clang-14', 'are what their source compiles to', () => {
    const again = join(directory, 'again.o')
    execFileSync('sh', [join(root, 'scripts/build-ebpf.sh'), again], { cwd: directory })
    expect(readFileSync(again).equals(readFileSync(join(root, 'native/ebpf/exec.bpf.o')))).toBe(true)
  })

  it('name no place of the machine that made them', () => {
    expect(readFileSync(join(root, 'native/ebpf/exec.bpf.o'), 'latin1')).not.toMatch(/\/(tmp|home|root|work)\//)
  })
})
