/** S4: $SAVEPOINT_HOME on a full disk, on one that is read-only, in a directory of somebody else, and gone. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { builtCommand, savepoint, savepointAsUser, savepointInShell, savepointJson } from './support/built-cli.ts'
import { Client, endDaemons, startDaemon } from './support/daemon.ts'
import { runVerbs } from './support/engine-process.ts'
import { canMount, isRoot } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

const needs = canMount ? '' : ' [needs a kernel that lets root mount]'
const MB = 1024 * 1024
/** For tests that start the program some twenty times, on a machine that is busy. */
const LONG_MS = 240_000

let space: Workspace
let ids: string[]

/** Two snapshots, then an edit. The home has a filesystem of its own. */
beforeEach(() => {
  space = new Workspace()
  mkdirSync(space.home)
  if (canMount) mount(`size=${32 * MB},mode=700`)
  writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
  space.write('a.txt', 'one\n')
  space.write('dir/b.txt', 'b\n')
  take('first')
  space.write('a.txt', 'two\n')
  take('second')
  space.write('a.txt', 'three\n')
  ids = savepointJson(space, ['snapshots']).map(({ id }: { id: string }) => id)
})

afterEach(async () => {
  await endDaemons()
  if (canMount) {
    spawnSync('mount', ['-o', 'remount,rw', space.home])
    execFileSync('umount', ['-l', space.home])
  }
  space.remove()
})

const mount = (options: string) => execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'none', space.home])
const remount = (options: string) => execFileSync('mount', ['-o', `remount,${options}`, space.home])
const take = (label: string) => expect(savepoint(space, ['snapshot', '-m', label])).toMatchObject({ status: 0 })
const freeBytes = () => statfsSync(space.home).bavail * statfsSync(space.home).bsize

/** Fills the disk of the home up to the last `rest` bytes. */
function fill(rest = 0): void {
  const fd = openSync(join(space.home, 'filler'), 'a')
  try {
    const bytes = Buffer.alloc(freeBytes() - rest)
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
  } finally {
    closeSync(fd)
  }
  expect(freeBytes()).toBe(rest)
}

const withoutReserve = () => rmSync(join(space.home, 'store/reserve'), { force: true })

/** A snapshot that is only in the log of the database, as a process leaves it that is killed before it closes. */
async function leaveLog(): Promise<void> {
  const { signal } = await runVerbs(space, [['snapshot', { label: 'in the log' }]], { failpoint: 'snapshot:row' })
  expect(signal).toBe('SIGKILL')
  const [timeline] = readdirSync(join(space.home, 'timelines'))
  const log = join(space.home, 'timelines', timeline!, 'timeline.sqlite-wal')
  expect(statSync(log).size).toBeGreaterThan(0)
  ids = [...ids, 'in the log']
}

type Call = (args: string[]) => ReturnType<typeof savepoint>

/** Every verb that only looks answers as ever, and says nothing on the side. */
function expectReadable(call: Call, options: { labels?: string[]; stderr?: RegExp } = {}): void {
  const quietly = (...args: string[]): string => {
    const { status, stdout, stderr } = call(args)
    expect([args, status, stderr]).toEqual([args, 0, options.stderr ? expect.stringMatching(options.stderr) : ''])
    return stdout
  }
  const labels = options.labels ?? ['first', 'second']
  const listed = JSON.parse(quietly('snapshots', '--json')).map(({ label }: { label: string }) => label)
  expect(listed.toSorted()).toEqual(labels.toSorted())
  expect(quietly('log')).toContain('second')
  expect(quietly('show', 'second')).toContain('a.txt')
  expect(quietly('show', 'first', 'a.txt')).toBe('one\n')
  expect(quietly('diff', 'first', 'second')).toContain('-one\n+two\n')
  if (labels.length === 2) expect(quietly('diff')).toContain('-two\n+three\n')
  expect(quietly('diff', 'first')).toContain('-one\n+three\n')
  expect(quietly('changes')).toContain(labels.length === 2 ? 'a.txt' : '')
  expect(JSON.parse(quietly('status', '--json')).snapshots).toBe(labels.length)
  expect(quietly('history', 'a.txt')).toContain('modified')
  expect(quietly('coverage', 'a.txt')).toContain('a.txt')
  expect(JSON.parse(quietly('operations', '--json'))).toEqual([])
  expect(JSON.parse(quietly('runs', '--json'))).toEqual([])
  quietly('verify')
  quietly('completion', 'bash')
  quietly('rollback', 'first', '--dry-run')
  const archive = join(space.base, `out-${Math.random()}.tar`)
  const out = join(space.base, `out-${Math.random()}`)
  if (call === callAsRoot) {
    quietly('export', 'first', archive)
    expect(execFileSync('tar', ['xOf', archive, './a.txt']).toString()).toBe('one\n')
    quietly('rollback', 'first', '--to', out)
    expect(readFileSync(join(out, 'a.txt'), 'utf8')).toBe('one\n')
  }
  expect(call(['doctor']).stdout).toContain('native addon')
  expect(space.read('a.txt')).toBe('three\n')
}

const callAsRoot: Call = args => savepoint(space, args)

describe('a home that is mounted read-only', () => {
  it.skipIf(!canMount)(
    `is read, without a word, and verbs that write say why they cannot${needs}`,
    { timeout: LONG_MS },
    () => {
      remount('ro')
      const before = imageOf(space.home)
      expectReadable(callAsRoot)
      for (const args of [
        ['snapshot'],
        ['tag', 'x'],
        ['delete', 'first'],
        ['gc'],
        ['undo'],
        ['prune'],
        ['verify', '--repair'],
        ['revert', 'a.txt'],
      ]) {
        const { status, stderr } = savepoint(space, args)
        expect([args, status, stderr]).toEqual([
          args,
          1,
          expect.stringMatching(/^savepoint: Cannot .*read-only.*\n {2}hint: /),
        ])
      }
      expect(differences(before, imageOf(space.home))).toEqual([])
      expect(space.read('a.txt')).toBe('three\n')
    },
  )

  it.skipIf(!canMount)(
    `is read with what is only in the log of the database${needs}`,
    { timeout: LONG_MS },
    async () => {
      await leaveLog()
      remount('ro')
      const before = imageOf(space.home)
      expectReadable(callAsRoot, { labels: ['first', 'second', 'in the log'] })
      expect(differences(before, imageOf(space.home))).toEqual([])
    },
  )

  it.skipIf(!canMount)(`is read when the log has no index beside it${needs}`, { timeout: LONG_MS }, async () => {
    await leaveLog()
    for (const file of readdirSync(space.home, { recursive: true }) as string[])
      if (file.endsWith('-shm')) rmSync(join(space.home, file))
    remount('ro')
    expectReadable(callAsRoot, { labels: ['first', 'second', 'in the log'] })
  })

  it.skipIf(!canMount)(`a restore that was interrupted is named, and stays${needs}`, async () => {
    await runVerbs(space, [['rollback', 'first']], { failpoint: 'restore:place' })
    remount('ro')
    const { status, stderr } = savepoint(space, ['log'])
    expect(status).toBe(0)
    expect(stderr).toMatch(/^savepoint: a command that was interrupted is not completed yet: .*read-only/)
    const refused = savepoint(space, ['rollback', 'first', '--no-safety'])
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('hint: ') })
    remount('rw')
    expect(savepoint(space, ['log']).stderr).toContain('completed a rollback')
    expect(space.read('a.txt')).toBe('one\n')
  })

  it.skipIf(!canMount)(`rollback --no-safety works, and says loudly what is missing${needs}`, () => {
    remount('ro')
    const refused = savepoint(space, ['rollback', 'first'])
    expect(refused.status).toBe(1)
    expect(refused.stderr).toMatch(
      /Cannot save the state before the rollback: .*read-only.*\n {2}hint: .*--to DIR.*--no-safety/,
    )
    const { status, stderr } = savepoint(space, ['rollback', 'first', '--no-safety'])
    expect([status, stderr]).toEqual([0, expect.stringMatching(/NOT saved: this cannot be undone.*\n.*NOT recorded/)])
    expect(space.read('a.txt')).toBe('one\n')
    remount('rw')
    expect(savepointJson(space, ['operations'])).toEqual([])
    expect(savepoint(space, ['verify']).status).toBe(0)
  })
})

describe('a home that this user may only read', () => {
  const close = () => execFileSync('chmod', ['-R', 'a+rX,a-w', space.home])

  it('is read, also beside its owner’s live process', { timeout: LONG_MS }, async () => {
    execFileSync('chmod', ['a+rx', space.base])
    close()
    const call: Call = args => savepointAsUser(space, args)
    expectReadable(call)
    expect(call(['snapshot'])).toMatchObject({ status: 1, stderr: expect.stringMatching(/read-only for this user/) })
    if (!isRoot) return
    // Root writes all the same. Its process has the databases open, with logs beside them.
    const [program, ...args] = builtCommand
    const child = spawn(program!, [...args, 'run', '--', 'sh', '-c', 'echo up; read line'], {
      cwd: space.dir,
      env: space.env,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    await once(child.stdout!, 'data')
    close()
    expect(JSON.parse(call(['runs', '--json']).stdout)).toHaveLength(1)
    expect(JSON.parse(call(['snapshots', '--json']).stdout)).toHaveLength(3)
    child.stdin!.end('\n')
    expect((await once(child, 'exit'))[0]).toBe(0)
    expect(savepoint(space, ['verify']).status).toBe(0)
  })
})

describe('a home whose filesystem becomes read-only meanwhile, as after an error of the disk', () => {
  /** What is open stays so; nothing can be made or removed any more. */
  function turnReadOnly(): void {
    execFileSync('mount', ['--bind', space.home, space.home])
    execFileSync('mount', ['-o', 'remount,bind,ro', space.home])
  }
  const turnBack = () => execFileSync('umount', ['-l', space.home])

  it.skipIf(!canMount)(`lets a run end as its command did${needs}`, async () => {
    const [command, ...args] = [...builtCommand, 'run', '--', 'sh', '-c', 'echo ready; read x; exit 4']
    const child = spawn(command!, args, { cwd: space.dir, env: space.env, stdio: ['pipe', 'pipe', 'pipe'] })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk
    })
    await once(child.stdout, 'data')
    turnReadOnly()
    try {
      child.stdin.end('\n')
      const [status] = await once(child, 'close')
      expect(stderr).not.toContain('defect')
      expect(status).toBe(4)
    } finally {
      turnBack()
    }
  })

  const hasExt4 = canMount && spawnSync('mkfs.ext4', ['-V']).status === 0 && existsSync('/sys/fs/ext4')
  it.skipIf(!hasExt4)(
    'lets a run end as its command did, on ext4 that met an error [needs ext4 and loop devices]',
    async () => {
      const [image, disk] = [join(space.base, 'image'), join(space.base, 'disk')]
      mkdirSync(disk)
      execFileSync('truncate', ['-s', '24M', image])
      execFileSync('mkfs.ext4', ['-q', '-F', image])
      execFileSync('mount', ['-o', 'loop,errors=remount-ro', image, disk])
      try {
        const device = execFileSync('findmnt', ['-no', 'SOURCE', disk], { encoding: 'utf8' }).trim()
        const env = { ...space.env, SAVEPOINT_HOME: join(disk, 'home') }
        mkdirSync(env.SAVEPOINT_HOME, { mode: 0o700 })
        writeFileSync(join(env.SAVEPOINT_HOME, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
        const [command, ...args] = [...builtCommand, 'run', '--', 'sh', '-c', 'echo ready; read x; exit 4']
        const child = spawn(command!, args, { cwd: space.dir, env, stdio: ['pipe', 'pipe', 'inherit'] })
        await once(child.stdout, 'data')
        writeFileSync(`/sys/fs/ext4/${device.replace('/dev/', '')}/trigger_fs_error`, '1')
        child.stdin.end('\n')
        expect((await once(child, 'close'))[0]).toBe(4)
        // Its rights are as before, and there is room.
        expect(savepoint(space, ['snapshot'], { env }).stderr).toMatch(/^savepoint: Cannot .*read-only/m)
      } finally {
        execFileSync('umount', ['-l', disk])
      }
    },
  )

  it.skipIf(!canMount)(`lets a daemon end when it is told to${needs}`, async () => {
    const daemon = await startDaemon(space)
    turnReadOnly()
    try {
      daemon.child.kill('SIGTERM')
      expect(await daemon.ended).toMatchObject({ status: 0, stderr: expect.not.stringContaining('defect') })
    } finally {
      turnBack()
    }
    // What it left is in nobody's way.
    expect(savepointJson(space, ['ctl', 'head'])).toMatchObject({ label: 'second' })
    const next = await startDaemon(space)
    expect(next.socket).toBe(daemon.socket)
  })
})

describe('a home on a disk that is full to the last byte', () => {
  it.skipIf(!canMount)(`is answered from by a daemon as it is once there is room again${needs}`, async () => {
    const daemon = await startDaemon(space)
    const client = new Client(daemon.socket)
    const head = async () => (await client.ask({ op: 'head' })).result.label
    withoutReserve()
    fill()
    expect(await head()).toBe('second')
    rmSync(join(space.home, 'filler'))
    take('third')
    expect(await head()).toBe('third')
    client.end()
  })

  it.skipIf(!canMount)(`is read, without a word${needs}`, { timeout: LONG_MS }, () => {
    fill()
    expectReadable(callAsRoot)
    expect(freeBytes()).toBe(0)
  })

  it.skipIf(!canMount)(
    `is read with what is only in the log of the database${needs}`,
    { timeout: LONG_MS },
    async () => {
      await leaveLog()
      fill()
      expectReadable(callAsRoot, { labels: ['first', 'second', 'in the log'] })
    },
  )

  it.skipIf(!canMount)(`verbs that write say so${needs}`, () => {
    withoutReserve()
    fill()
    for (const args of [
      ['snapshot'],
      ['tag', 'x'],
      ['delete', 'first'],
      ['gc'],
      ['revert', 'a.txt'],
      ['rollback', 'first'],
    ]) {
      const { status, stderr } = savepoint(space, args)
      expect([args, status, stderr]).toEqual([
        args,
        1,
        expect.stringMatching(/^savepoint: Cannot .*full.*\n {2}hint: /),
      ])
    }
    expect(space.read('a.txt')).toBe('three\n')
  })

  it.skipIf(!canMount)(`rollback --no-safety works without a byte to spare${needs}`, () => {
    withoutReserve()
    fill()
    const { status, stderr } = savepoint(space, ['rollback', 'first', '--no-safety'])
    expect([status, stderr]).toEqual([0, expect.stringMatching(/NOT saved: this cannot be undone.*\n.*NOT recorded/)])
    expect(space.read('a.txt')).toBe('one\n')
  })

  it.skipIf(!canMount)(`is read when the temporary directory is on the same disk${needs}`, () => {
    fill()
    const env = { ...space.env, TMPDIR: space.home }
    expect(savepoint(space, ['show', 'first', 'a.txt'], { env })).toMatchObject({
      status: 0,
      stdout: 'one\n',
      stderr: '',
    })
    const copies = (directory: string) => readdirSync(directory).filter(name => name.startsWith('savepoint-reading-'))
    expect(copies(space.home)).toEqual([])
  })

  it.skipIf(!canMount)(`the target is on the same disk: one file goes back, and forth${needs}`, () => {
    const project = join(space.home, 'project')
    const there = { cwd: project }
    mkdirSync(project)
    writeFileSync(join(project, 'a'), 'one')
    expect(savepoint(space, ['snapshot', '-m', 'then'], there).status).toBe(0)
    writeFileSync(join(project, 'a'), 'two')
    fill()
    expect(savepoint(space, ['revert', 'a'], there)).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(join(project, 'a'), 'utf8')).toBe('one')
    expect(savepoint(space, ['undo'], there)).toMatchObject({ status: 0, stderr: '' })
    expect(readFileSync(join(project, 'a'), 'utf8')).toBe('two')
  })

  it.skipIf(!canMount)(`rolling back gives up the reserve: saved, recorded, and undone${needs}`, () => {
    fill()
    expect(savepoint(space, ['rollback', 'first'])).toMatchObject({ status: 0, stderr: '' })
    expect(space.read('a.txt')).toBe('one\n')
    expect(existsSync(join(space.home, 'store/reserve'))).toBe(false)
    expect(savepoint(space, ['undo'])).toMatchObject({ status: 0 })
    expect(space.read('a.txt')).toBe('three\n')
    rmSync(join(space.home, 'filler'))
    take('roomy')
    expect(existsSync(join(space.home, 'store/reserve'))).toBe(true)
    expect(savepoint(space, ['verify']).status).toBe(0)
  })
})

describe('a home on a disk that is nearly full', () => {
  it.skipIf(!canMount)(`a revert of one file saves that file only${needs}`, () => {
    withoutReserve()
    space.write('unrelated', noise(4 * MB, 1))
    space.write('dir/new', noise(2 * MB, 2))
    fill(MB)
    const { status, stderr } = savepoint(space, ['revert', 'a.txt', '--from', 'first'])
    expect([status, stderr]).toEqual([
      0,
      'savepoint: for want of room the state before has only what is about to change: 2 files of now are not in it\n',
    ])
    expect(space.read('a.txt')).toBe('one\n')
    const safety = savepointJson(space, ['snapshots']).find(({ type }: { type: string }) => type === 'safety')
    expect(savepoint(space, ['show', safety.id, 'a.txt']).stdout).toBe('three\n')
    expect(savepointJson(space, ['show', safety.id]).skipped).toEqual([
      { path: 'dir/new', reason: 'no-room' },
      { path: 'unrelated', reason: 'no-room' },
    ])
    expect(savepoint(space, ['undo'])).toMatchObject({ status: 0 })
    expect(space.read('a.txt')).toBe('three\n')
    expect(statSync(space.at('unrelated')).size).toBe(4 * MB)
    expect(statSync(space.at('dir/new')).size).toBe(2 * MB)
    expect(savepoint(space, ['verify']).status).toBe(0)
  })

  it.skipIf(!canMount)(`what cannot be saved is left alone and listed${needs}`, () => {
    withoutReserve()
    space.write('dir/b.txt', noise(4 * MB, 3))
    fill(MB)
    const { status, stdout } = savepoint(space, ['rollback', 'first'])
    expect(status).toBe(3)
    expect(stdout).toMatch(/dir\/b\.txt: its present content could not be stored first/)
    expect(space.read('a.txt')).toBe('one\n')
    expect(statSync(space.at('dir/b.txt')).size).toBe(4 * MB)
    expect(savepoint(space, ['undo'])).toMatchObject({ status: 0 })
    expect(space.read('a.txt')).toBe('three\n')
    expect(statSync(space.at('dir/b.txt')).size).toBe(4 * MB)
  })

  it.skipIf(!canMount)(
    `gc completes what was interrupted with the room that there is, and frees space${needs}`,
    async () => {
      // Something that only gc can free: stored by a capture that was killed, named by nothing.
      space.write('a.txt', noise(6 * MB, 4))
      const killed = await runVerbs(space, [['snapshot']], { failpoint: 'snapshot:before-row' })
      expect(killed.signal).toBe('SIGKILL')
      space.write('a.txt', 'three\n')
      const { signal } = await runVerbs(space, [['rollback', 'first', { paths: ['a.txt'] }]], {
        failpoint: 'restore:place',
      })
      expect(signal).toBe('SIGKILL')
      space.write('dir/later', noise(12 * MB, 6))
      fill()
      const { status, stdout, stderr } = savepoint(space, ['gc'])
      expect([status, stderr]).toEqual([0, expect.stringContaining('completed a rollback')])
      expect(space.read('a.txt')).toBe('one\n')
      expect(stdout).toMatch(/^Freed /)
      expect(freeBytes()).toBeGreaterThan(5 * MB)
      rmSync(join(space.home, 'filler'))
      expect(savepoint(space, ['verify']).status).toBe(0)
    },
  )
})

describe('run', () => {
  const script = ['sh', '-c', 'echo ran > made; exit 7']

  it.skipIf(!canMount)(`--unprotected starts the command when nothing can be written${needs}`, () => {
    withoutReserve()
    for (const mode of ['ro', 'rw']) {
      remount(mode)
      if (mode === 'rw') fill()
      const refused = savepoint(space, ['run', '--', ...script])
      expect(refused).toMatchObject({
        status: 125,
        stderr: expect.stringMatching(/^savepoint: Cannot start the command: .*\n {2}hint: /),
      })
      expect(existsSync(space.at('made'))).toBe(false)
      const { status, stderr } = savepoint(space, ['run', '--unprotected', '--', ...script])
      expect([status, stderr]).toEqual([7, expect.stringMatching(/^savepoint: NOTHING is recorded of this run, .*\n$/)])
      expect(space.read('made')).toBe('ran\n')
      rmSync(space.at('made'))
    }
  })

  it.skipIf(!canMount)(`says that a read-only home cannot take another directory, or be made${needs}`, () => {
    const cwd = join(space.base, 'other')
    mkdirSync(cwd)
    remount('ro')
    for (const home of [space.home, join(space.home, 'none')]) {
      const env = { ...space.env, SAVEPOINT_HOME: home }
      const why = `Cannot use ${home}: the filesystem is read-only\n  hint: Set SAVEPOINT_HOME to a directory that you can write to`
      const refused = [savepoint(space, ['snapshot'], { cwd, env }), savepoint(space, ['run', 'true'], { cwd, env })]
      expect(refused.map(({ status }) => status)).toEqual([1, 125])
      for (const { stderr } of refused) expect(stderr).toContain(why)
      expect(savepoint(space, ['run', '--unprotected', 'true'], { cwd, env }).status).toBe(0)
    }
  })

  it('--unprotected starts the command when the home cannot be opened or made', () => {
    const env = { ...space.env, SAVEPOINT_HOME: '/dev/null/nowhere' }
    expect(savepoint(space, ['run', '--', ...script], { env })).toMatchObject({ status: 125 })
    expect(existsSync(space.at('made'))).toBe(false)
    const { status, stderr } = savepoint(space, ['run', '--unprotected', '--', ...script], { env })
    expect([status, stderr]).toEqual([7, expect.stringMatching(/^savepoint: NOTHING is recorded of this run, .*\n$/)])
    const json = savepoint(space, ['run', '--json', '--unprotected', '--', ...script], { env })
    expect(JSON.parse(json.stderr.trim().split('\n').at(-1)!)).toMatchObject({ run: null, exit_code: 7 })
  })

  it('passes the exit code through when the home is deleted meanwhile', () => {
    const remove = 'find "$SAVEPOINT_HOME" -mindepth 1 ! -name config.yaml -delete'
    for (const removal of [remove, `${remove}; ${savepointInShell} snapshot >&2`]) {
      // The default tracer would refuse it.
      const { status, stderr } = savepoint(space, ['run', '--tracer', 'none', '--', 'sh', '-c', `${removal}; exit 7`])
      expect([status, stderr]).toEqual([
        7,
        expect.stringMatching(/history of .* was DELETED or moved meanwhile: without it this run cannot be undone/),
      ])
      expect(stderr).not.toMatch(/defect|Error/)
    }
    // What the second one began anew is whole.
    expect(savepoint(space, ['verify'])).toMatchObject({ status: 0 })
  })

  it('passes the exit code through when what the home lies in is moved meanwhile, and undo works when it is back', () => {
    const env = { ...space.env, SAVEPOINT_HOME: join(space.base, 'above', 'home') }
    space.write('a', 'a1')
    const script = ['--', 'sh', '-c', 'echo a2 > a; mv ../above ../moved; exit 7']
    const { status, stderr } = savepoint(space, ['run', ...script], { env })
    expect([status, stderr]).toEqual([7, expect.stringContaining('was DELETED or moved meanwhile')])
    expect(stderr).not.toMatch(/defect|Cannot open/)
    renameSync(join(space.base, 'moved'), join(space.base, 'above'))
    expect(savepoint(space, ['undo'], { env })).toMatchObject({ status: 0 })
    expect(space.read('a')).toBe('a1')
  })

  it.skipIf(!canMount)(`passes the exit code through when the disk fills up meanwhile${needs}`, () => {
    withoutReserve()
    const filling =
      'head -c 100000000 /dev/zero > "$SAVEPOINT_HOME/filler" 2>/dev/null; head -c 3000000 /dev/urandom > made; exit 7'
    const { status, stderr } = savepoint(space, ['run', '--tracer', 'none', '--', 'sh', '-c', filling])
    expect([status, stderr]).toEqual([7, expect.stringMatching(/NOT captured: .*to go back: savepoint rollback snap_/)])
    rmSync(join(space.home, 'filler'))
    expect(savepoint(space, ['verify']).status).toBe(0)
  })
})
