/** `record` where something is wrong: what is refused is refused before the command starts, and nothing that was recorded is lost. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Bundle } from '../src/record/index.ts'
import { holdRecording } from '../src/record/recording.ts'
import { asOrdinaryUser, builtCommand, giveToUser, savepoint, savepointAsUser } from './support/built-cli.ts'
import { compileC } from './support/c-program.ts'
import { foreignProgram, NO_FOREIGN_CALLS } from './support/foreign-program.ts'
import { canMount, gated, isRoot } from './support/machine.ts'
import { Recorded, record, recordScript } from './support/recorded.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

const at = (name: string) => join(space.base, name)
const ignoreFile = () => join(space.userHome, '.config/savepoint/ignore.json')

describe('ignore.json', () => {
  it('is made with the usual paths, and those are left out', () => {
    mkdirSync(join(space.userHome, '.cache'))
    const recorded = recordScript(
      space,
      'echo x > "$HOME/.cache/x"; echo y > "$HOME/y"; cat "$HOME/.config/savepoint/ignore.json" >/dev/null',
    )
    expect(JSON.parse(readFileSync(ignoreFile(), 'utf8'))).toEqual([
      '$HOME/.cache',
      '$HOME/.claude',
      '$HOME/.codex',
      '$HOME/.cursor',
      '$XDG_CONFIG_HOME/savepoint/ignore.json',
      '/proc',
      '/sys',
      '/dev',
      '/usr',
      '/bin',
      '/lib',
      '/lib64',
    ])
    expect([recorded.find(join(space.userHome, '.cache/x')), recorded.find(ignoreFile())]).toEqual([
      undefined,
      undefined,
    ])
    expect(recorded.find(join(space.userHome, 'y'))).toMatchObject({ operations: ['write'] })
    expect(recorded.manifest.not_recorded.ignored).toBeGreaterThan(0)
  })

  it('of one’s own counts, with what lies below; and is itself never recorded', () => {
    const config = at('config')
    mkdirSync(join(config, 'savepoint'), { recursive: true })
    writeFileSync(
      join(config, 'savepoint/ignore.json'),
      JSON.stringify([`${space.dir}/left-out/`, '$HOME/not', '$XDG_CONFIG_HOME/other']),
    )
    const env = { ...space.env, XDG_CONFIG_HOME: config }
    const recorded = recordScript(
      space,
      'mkdir left-out left-out-not; echo x > left-out/x; echo y > left-out-not/y; echo z > "$HOME/not"; cat "$XDG_CONFIG_HOME/savepoint/ignore.json" >/dev/null',
      { env },
    )
    expect(recorded.result.status).toBe(0)
    expect(
      [
        space.at('left-out'),
        space.at('left-out/x'),
        join(space.userHome, 'not'),
        join(config, 'savepoint/ignore.json'),
      ].map(path => recorded.find(path)),
    ).toEqual([undefined, undefined, undefined, undefined])
    expect(recorded.text(space.at('left-out-not/y'), 'after')).toBe('y\n')
    expect(existsSync(ignoreFile())).toBe(false)
  })

  it.each(['{"a": 1}', '["/x", 3]', '["relative"]', '[', ''])(
    'that is %j stops everything before the command starts',
    text => {
      mkdirSync(join(space.userHome, '.config/savepoint'), { recursive: true })
      writeFileSync(ignoreFile(), text)
      const { result, directory } = recordScript(space, 'echo started > started')
      expect([result.status, result.stderr]).toEqual([2, expect.stringContaining(`Cannot use ${ignoreFile()}`)])
      expect([space.read('started'), existsSync(directory)]).toEqual([undefined, false])
    },
  )
})

it.each(['mkfifo', 'mkdir'])('ignore.json made by %s neither hangs nor starts anything', make => {
  mkdirSync(join(space.userHome, '.config/savepoint'), { recursive: true })
  spawnSync(make, [ignoreFile()])
  const { result } = recordScript(space, 'echo started > started')
  expect([result.status, result.stderr]).toEqual([2, expect.stringContaining('is not a regular file')])
  expect(space.read('started')).toBeUndefined()
})

it('is complete although the command was refused what no user may do, and told of it once', () => {
  mkdirSync(at('shut'))
  giveToUser(space)
  chmodSync(at('shut'), 0)
  const script =
    'cat "$1/x"; echo > "$1/x"; mkdir "$1/d/d"; echo f > f; echo > f/below; ln -s loop loop; echo > loop; cat loop/x; rm f/x loop/x; true'
  const args = ['record', '-o', at('bundle'), '--', 'sh', '-c', script, 'sh', at('shut')]
  const { status, stderr } = savepointAsUser(space, args)
  expect([status, stderr]).toEqual([0, expect.not.stringMatching(/INCOMPLETE|could not be stored/)])
  const { manifest } = new Bundle(at('bundle'))
  expect([manifest.complete, manifest.lost_events, manifest.skipped]).toEqual([true, 0, []])
})

it('does not count where the output went among what was changed outside', () => {
  const [out, err] = [openSync(at('out'), 'w'), openSync(at('err'), 'w')]
  const { directory } = recordScript(space, 'echo x; echo y >&2; echo z > z', { stdio: ['ignore', out, err] })
  for (const fd of [out, err]) closeSync(fd)
  const back = savepoint(space, ['bundle', 'restore', '--before', '--in-place', '--yes', directory])
  expect([back.status, back.stdout]).toEqual([0, expect.not.stringContaining('outside')])
  expect(readFileSync(at('out'), 'utf8')).toBe('x\n')
})

describe('is refused, and the command not started', () => {
  it('where a bundle is already, unless --force is said; and never over anything else', () => {
    expect(recordScript(space, 'echo 1 > f', { name: 'bundle' }).result.status).toBe(0)
    const again = recordScript(space, 'echo 2 > f', { name: 'bundle' })
    expect([again.result.status, again.result.stderr]).toEqual([
      125,
      expect.stringContaining('there is a bundle already'),
    ])
    expect(space.read('f')).toBe('1\n')
    const forced = recordScript(space, 'echo 3 > f', { name: 'bundle', args: ['--force'] })
    expect([forced.result.status, forced.text(space.at('f'), 'after')]).toEqual([0, '3\n'])
    expect(readdirSync(space.base).filter(name => name.startsWith('.'))).toEqual([])
    mkdirSync(at('mine'))
    writeFileSync(join(at('mine'), 'precious'), 'x')
    for (const args of [[], ['--force']]) {
      const refused = recordScript(space, 'echo 4 > f', { name: 'mine', args })
      expect([refused.result.status, refused.result.stderr]).toEqual([
        125,
        expect.stringContaining('something else is there'),
      ])
    }
    expect([space.read('f'), readdirSync(at('mine'))]).toEqual(['3\n', ['precious']])
  })

  it('where the bundle would lie in Savepoint’s own home', () => {
    mkdirSync(space.home)
    symlinkSync(space.home, at('link'))
    for (const name of ['store home/bundle', 'link/bundle', 'link']) {
      const { result } = recordScript(space, 'echo started > started', { name })
      expect([result.status, result.stderr]).toEqual([125, expect.stringContaining('it belongs to Savepoint itself')])
    }
    expect([readdirSync(space.dir), readdirSync(space.home)]).toEqual([[], []])
  })

  it('where the bundle could not be written', () => {
    for (const name of ['missing/bundle', 'file/bundle']) {
      writeFileSync(at('file'), '')
      const { result } = recordScript(space, 'echo started > started', { name })
      expect([name, result.status]).toEqual([name, 125])
    }
    giveToUser(space)
    spawnSync('chmod', ['555', space.dir])
    const result = savepointAsUser(space, ['record', '-o', 'bundle', '--', 'sh', '-c', 'echo started > ../started'])
    expect([result.status, result.stderr]).toEqual([125, expect.stringContaining('permission denied')])
    expect([space.read('started'), existsSync(at('started'))]).toEqual([undefined, false])
  })

  it('when there is no such command', () => {
    const { result, directory } = record(space, ['no-such-command'])
    expect([result.status, result.stderr]).toEqual([125, expect.stringContaining('command not found')])
    expect([existsSync(directory), readdirSync(join(space.home, 'recordings'))]).toEqual([false, []])
    expect(savepoint(space, ['record', '-o', at('b')]).status).toBe(2)
    expect(savepoint(space, ['record', '--', 'true']).status).toBe(2)
  })

  it('inside of a run, where nothing can trace it as well', () => {
    const inner = builtCommand.map(word => `'${word}'`).join(' ')
    const { status, stderr } = savepoint(space, [
      'run',
      '--',
      'sh',
      '-c',
      `${inner} record -o '${at('bundle')}' -- sh -c 'echo started > started'`,
    ])
    expect([status, stderr]).toEqual([13, expect.stringContaining('record from outside')])
    expect([space.read('started'), existsSync(at('bundle'))]).toEqual([undefined, false])
  })
})

describe('whoever dies', () => {
  /** Starts a recording whose command waits, and tells when it does. */
  async function waiting(script: string) {
    const [program, ...args] = builtCommand
    const child = spawn(program!, [...args, 'record', '-o', at('bundle'), '--', 'sh', '-c', script], {
      cwd: space.dir,
      env: space.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', chunk => {
      stderr += chunk
    })
    const ended = once(child, 'exit')
    await appears('ready')
    return { child, ended, stderr: () => stderr }
  }

  const appears = async (name: string) => {
    const watcher = watch(space.dir)
    try {
      while (!existsSync(space.at(name))) await once(watcher, 'change')
    } finally {
      watcher.close()
    }
  }

  /** Not the guards, which stand by for them. */
  const helpers = () =>
    readdirSync('/proc').filter(
      pid => /^\d+$/.test(pid) && nameOf(pid) === 'savepoint-helpe' && parentsOf(pid).includes(process.pid),
    )

  it('the tracer: the command goes on, and the bundle says that it is incomplete', async () => {
    space.write('file', 'before\n')
    const { ended, stderr } = await waiting(
      'echo changed > file; : > ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; echo unseen > unseen; exit 5',
    )
    for (const pid of helpers()) process.kill(Number(pid), 'SIGKILL')
    writeFileSync(space.at('go'), '')
    expect(await ended).toEqual([5, null])
    expect(stderr()).toContain('INCOMPLETE')
    const bundle = new Bundle(at('bundle'))
    expect(bundle.manifest).toMatchObject({ complete: false, exit_status: 5 })
    const file = bundle.files.find(({ path }) => path === space.at('file'))!
    expect(bundle.content(file.before, 100)!.toString()).toBe('before\n')
    bundle.close()
    expect(space.read('unseen')).toBe('unseen\n')
  })

  it('we ourselves: the command goes on, and the bundle can be made afterwards', async () => {
    space.write('file', 'before\n')
    const { child, ended } = await waiting(
      'echo changed > file; : > ready; while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; echo later > later; mv later done',
    )
    child.kill('SIGKILL')
    await ended
    const finished = appears('done')
    writeFileSync(space.at('go'), '')
    await finished
    const [name] = readdirSync(join(space.home, 'recordings'))
    const told = record(space, ['true'])
    expect(told.result.stderr).toContain(`savepoint record --finish ${name} -o BUNDLE`)
    expect(savepoint(space, ['record', '--finish', 'nothing', '-o', at('late')]).stderr).toContain(
      `Unfinished: ${name}`,
    )
    const { status, stderr } = savepoint(space, ['record', '--finish', name!, '-o', at('late')])
    expect([status, stderr]).toEqual([0, expect.stringContaining('INCOMPLETE: the recording was interrupted')])
    const late = new Recorded({ status, signal: null, stdout: '', stderr }, at('late'))
    expect([late.text(space.at('file'), 'before'), late.text(space.at('file'), 'after')]).toEqual([
      'before\n',
      'changed\n',
    ])
    expect(readdirSync(join(space.home, 'recordings'))).toEqual([])
  })

  it('nobody, but something of the command goes on: Ctrl-C writes the bundle', async () => {
    const { child, ended, stderr } = await waiting(
      "setsid sh -c 'while [ ! -e go ] && [ -e ready ]; do sleep 0.05; done; rm go' >/dev/null 2>&1 </dev/null & : > ready; exit 3",
    )
    while (!stderr().includes('Ctrl-C writes it now')) await once(child.stderr!, 'data')
    child.kill('SIGINT')
    expect(await ended).toEqual([3, null])
    const bundle = new Bundle(at('bundle'))
    expect(bundle.manifest).toMatchObject({ complete: false, exit_status: 3 })
    expect(bundle.manifest.incomplete_because[0]).toMatch(/went on$/)
    writeFileSync(space.at('go'), '')
    while (existsSync(space.at('go'))) await new Promise(resolve => setTimeout(resolve, 20))
  })
})

describe('a disk that is full', () => {
  gated(canMount, 'mounts', 'leaves the command unharmed, and the bundle says what is missing', () => {
    space.write('large', Buffer.alloc(24 * 1024 * 1024, 'large'))
    space.write('small', 'small\n')
    mkdirSync(at('disk'))
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=100m', 'none', at('disk')])
    try {
      // The home lies there: of the large file no copy may be made, since that would leave too little for others.
      spawnSync('dd', ['if=/dev/zero', `of=${at('disk')}/filler`, 'bs=1M', 'count=20'])
      const env = { ...space.env, SAVEPOINT_HOME: at('disk/home') }
      const recorded = recordScript(space, 'echo x >> large; echo y >> small', { env })
      expect([recorded.result.status, recorded.result.stderr]).toEqual([
        0,
        expect.stringContaining('INCOMPLETE: the disk was full'),
      ])
      expect(recorded.manifest.skipped).toEqual([{ path: space.at('large'), state: 'before', reason: 'no-space' }])
      expect([recorded.text(space.at('small'), 'before'), recorded.file(space.at('large')).after.size]).toEqual([
        'small\n',
        24 * 1024 * 1024 + 2,
      ])
      expect(savepoint(space, ['bundle', 'verify', recorded.directory]).status).toBe(0)
    } finally {
      spawnSync('umount', [at('disk')])
    }
  })

  gated(canMount, 'mounts', 'where the bundle is written: what fits is in it, and it can be read', () => {
    mkdirSync(at('disk'))
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'none', at('disk')])
    try {
      space.write('yyy', 'before\n')
      const script =
        'for i in 1 2 3 4 5 6 7 8; do head -c 6000000 /dev/urandom > noise$i; done; echo small > zzz; echo after > yyy'
      const recorded = recordScript(space, script, { name: 'disk/bundle' })
      expect([recorded.result.status, recorded.result.stderr]).toEqual([
        0,
        expect.stringContaining('INCOMPLETE: the disk was full'),
      ])
      expect(recorded.manifest.complete).toBe(false)
      expect(recorded.manifest.skipped.map(({ reason }) => reason)).toContain('no-space')
      const verified = savepoint(space, ['bundle', 'verify', recorded.directory])
      expect([verified.status, verified.stdout]).toEqual([0, expect.stringContaining('INCOMPLETE')])
      // What had no room can be written elsewhere.
      const [name] = readdirSync(join(space.home, 'recordings'))
      expect(recorded.result.stderr).toContain(`record --finish ${name} -o OTHER`)
      // In a container others soon have the number of the process that recorded.
      const start = join(space.home, 'recordings', name!, 'start.json')
      writeFileSync(start, JSON.stringify({ ...JSON.parse(readFileSync(start, 'utf8')), pid: process.pid }))
      const held = holdRecording(join(space.home, 'recordings', name!))!
      const early = savepoint(space, ['record', '--finish', name!, '-o', at('elsewhere')])
      expect([early.status, early.stderr]).toEqual([11, expect.stringContaining('it goes on, or its bundle')])
      held.release()
      const { status, stderr } = savepoint(space, ['record', '--finish', name!, '-o', at('elsewhere')])
      const late = new Recorded({ status, signal: null, stdout: '', stderr }, at('elsewhere'))
      expect([status, late.manifest.complete, late.text(space.at('yyy'), 'before')]).toEqual([0, true, 'before\n'])
      expect(readdirSync(join(space.home, 'recordings'))).toEqual([])
    } finally {
      spawnSync('umount', [at('disk')])
    }
  })

  gated(canMount, 'mounts', 'where not even a manifest fits: nothing is lost', () => {
    space.write('file', 'before\n')
    mkdirSync(at('disk'))
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', at('disk')])
    try {
      const script = 'echo after > file; for i in $(seq 400); do test -e some/rather/long/name/$i || :; done'
      const { result } = recordScript(space, script, { name: 'disk/bundle' })
      expect([result.status, result.stderr]).toEqual([1, expect.stringContaining('Nothing of the recording is lost')])
      expect(readdirSync(at('disk'))).toEqual([])
      const [name] = readdirSync(join(space.home, 'recordings'))
      const { status } = savepoint(space, ['record', '--finish', name!, '-o', at('elsewhere')])
      const late = new Recorded({ status, signal: null, stdout: '', stderr: '' }, at('elsewhere'))
      expect([status, late.text(space.at('file'), 'before')]).toEqual([0, 'before\n'])
    } finally {
      spawnSync('umount', [at('disk')])
    }
  })
})

describe('memory', () => {
  it('does not grow with what is recorded', () => {
    const script = `import os
for i in range(2500): open('f%d' % i, 'wb').write(os.urandom(80000))`
    const measure = `import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)`
    const command = [...builtCommand, 'record', '-q', '-o', at('bundle'), '--', 'python3', '-c', script]
    const { stdout } = spawnSync('python3', ['-c', measure, ...command], {
      cwd: space.dir,
      env: space.env,
      encoding: 'utf8',
    })
    const [status, peakKiB] = stdout.split(' ').map(Number)
    expect(status).toBe(0)
    expect(statSync(join(at('bundle'), 'blobs.parquet')).size).toBeGreaterThan(200_000_000)
    expect(peakKiB).toBeLessThan(200 * 1024)
  })
})

describe('an ordinary user', () => {
  it('records, but not files of others that it cannot write', () => {
    space.write('own', 'own\n')
    giveToUser(space)
    const other = isRoot && asOrdinaryUser.owner !== 0
    if (other) {
      writeFileSync(at('of-root'), 'of root\n', { mode: 0o644 })
      writeFileSync(at('shared'), 'shared\n')
      spawnSync('chmod', ['666', at('shared')])
    }
    const files = other ? '../of-root ../shared' : ''
    const result = savepointAsUser(space, [
      'record',
      '-o',
      at('bundle'),
      '--',
      'sh',
      '-c',
      `cat own ${files} /etc/passwd; echo new >> own`,
    ])
    expect([result.status, result.stderr]).toEqual([0, expect.stringContaining('recorded')])
    const recorded = new Recorded(result, at('bundle'))
    expect([recorded.text(space.at('own'), 'before'), recorded.text(space.at('own'), 'after')]).toEqual([
      'own\n',
      'own\nnew\n',
    ])
    if (other) {
      expect(recorded.find('/etc/passwd')).toBeUndefined()
      expect(recorded.find(at('of-root'))).toBeUndefined()
      expect(recorded.text(at('shared'), 'before')).toBe('shared\n')
      expect(recorded.manifest.not_recorded.of_others).toBeGreaterThan(0)
    }
  })
})

describe('calls of 32-bit programs', () => {
  it('are recorded as those of others are', () => {
    compileC(space.at('program'), foreignProgram)
    space.write('old', 'old\n')
    const recorded = record(space, ['./program'])
    // Where the kernel has no such calls.
    if (recorded.result.status === NO_FOREIGN_CALLS) return
    expect([recorded.result.status, recorded.manifest.incomplete_because]).toEqual([0, []])
    expect(recorded.file(space.at('made'))).toMatchObject({
      operations: ['write'],
      before: { exists: false },
      after: { type: 'directory' },
    })
    expect([recorded.text(space.at('old'), 'before'), recorded.text(space.at('old'), 'after')]).toEqual(['old\n', ''])
    expect(recorded.file(space.at('bound'))).toMatchObject({ operations: ['write'], before: { exists: false } })
    expect(recorded.file(space.at('looked-for')).operations).toEqual(['existence'])
  })
})

const nameOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

function parentsOf(pid: string): number[] {
  const parents: number[] = []
  for (let at = pid; at !== '0' && at !== ''; ) {
    try {
      at = /\) \S (\d+)/.exec(readFileSync(`/proc/${at}/stat`, 'utf8'))?.[1] ?? '0'
    } catch {
      break
    }
    parents.push(Number(at))
  }
  return parents
}
