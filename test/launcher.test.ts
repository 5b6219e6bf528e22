/** The launcher at the root: where it may be started from, what it does on first use, and how little it costs. */
import { type ChildProcess, execFile, type SpawnSyncOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cpuMsOf } from './support/cpu-time.ts'
import { isRoot } from './support/machine.ts'

const MAX_START_MS = 80
const NOBODY = 65534

const root = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
let temporary: string

beforeAll(() => {
  temporary = mkdtempSync(join(tmpdir(), 'savepoint launcher '))
  chmodSync(temporary, 0o755)
})
afterAll(() => rmSync(temporary, { recursive: true, force: true }))

const run = (file: string, args: string[] = [], options: SpawnSyncOptions = {}) => {
  const { status, stdout, stderr } = spawnSync(file, args, { ...options, encoding: 'utf8' })
  return { status, stdout, stderr }
}

describe('the launcher of this checkout', () => {
  let link: string

  beforeAll(() => {
    const directory = join(temporary, 'my bin')
    mkdirSync(directory)
    symlinkSync(join(root, 'savepoint'), join(directory, 'first'))
    symlinkSync('first', join(directory, 'savepoint'))
    link = join(directory, 'savepoint')
    run(link, ['--version'])
  })

  it('works through symlinks, from another directory, with spaces in the path', () => {
    const { status, stdout, stderr } = run(link, ['--version'], { cwd: temporary })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain(version)
  })

  it('works by a relative path, from PATH and as an argument of sh', () => {
    const directory = dirname(link)
    for (const result of [
      run('./savepoint', ['--version'], { cwd: directory }),
      run('savepoint', ['--version'], { cwd: '/', env: { ...process.env, PATH: `${directory}:${process.env.PATH}` } }),
      run('sh', ['savepoint', '--version'], { cwd: directory }),
      run('sh', ['savepoint', '--version'], { cwd: root }),
    ]) {
      expect(result).toEqual({ status: 0, stdout: expect.stringContaining(version), stderr: '' })
    }
  })

  it('works in a directory that its mode closes, and has nothing to say about it', () => {
    const script = 'mkdir "$1"; cd "$1"; chmod 000 .; exec "$2" --version'
    const closed = join(temporary, 'closed')
    const unprivileged = isRoot ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--'] : []
    const [program, ...args] = [...unprivileged, 'sh', '-c', script, 'sh', closed, link]
    const result = run(program!, args)
    rmdirSync(closed)
    expect(result).toEqual({ status: 0, stdout: expect.stringContaining(version), stderr: '' })
  })

  it('works in a directory that was removed, and has nothing to say about it but what sh says itself at its start', () => {
    const script = 'mkdir "$1"; cd "$1"; rmdir "$1"; PWD=$2; export PWD; exec "$3" --version'
    const inRemoved = (pwd: string) => run('sh', ['-c', script, 'sh', join(temporary, 'removed'), pwd, link])
    const expected = { status: 0, stdout: expect.stringContaining(version) }
    expect(inRemoved('/proc/self/cwd')).toEqual({ ...expected, stderr: '' })
    expect(inRemoved(join(temporary, 'removed'))).toEqual({
      ...expected,
      stderr: expect.stringMatching(/^(.*getcwd.*\n)?$/),
    })
  })

  it(`starts in less than ${MAX_START_MS} ms`, () => {
    const times = Array.from({ length: 5 }, () => cpuMsOf(link, ['--version'], { cwd: temporary }))
    expect(Math.min(...times)).toBeLessThan(MAX_START_MS)
  })
})

/**
 * A checkout of its own with a CLI that only reports how it was started; it shares the installed dependencies, and has what
 * this one has compiled of C, which takes the most time and is looked at by two tests only.
 */
function makeCheckout(name: string): string {
  const checkout = join(temporary, name)
  for (const path of ['savepoint', 'scripts', 'native', 'package.json', 'package-lock.json', 'tsconfig.json']) {
    cpSync(join(root, path), join(checkout, path), { recursive: true, preserveTimestamps: true })
  }
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  // Says that they are installed, whatever the dates: a test must not run npm on the dependencies of this checkout.
  mkdirSync(join(checkout, 'build'))
  cpSync(join(root, 'package-lock.json'), join(checkout, 'build/installed-lock.json'))
  for (const file of compiledFiles) {
    const from = join(root, 'build', file)
    if (existsSync(from)) cpSync(from, join(checkout, 'build', file), { preserveTimestamps: true })
  }
  const report = 'JSON.stringify({ pid: process.pid, args: process.argv.slice(2) })'
  const files = {
    'src/cli/main.ts': `console.log(${report})\nif (process.argv[2] === 'wait') setInterval(() => {}, 1000)\n`,
    'src/index.ts': 'export const open = (): number => 1\n',
    'src/targets/dir/restore-worker.ts': 'export {}\n',
    'src/api/api-worker.ts': 'export {}\n',
    'src/engine/left-trace-main.ts': 'export {}\n',
  }
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(checkout, file)), { recursive: true })
    writeFileSync(join(checkout, file), text)
  }
  return checkout
}

const compiledFiles = ['savepoint.node', 'savepoint-helper']
const removeCompiled = (checkout: string) => {
  for (const file of compiledFiles) rmSync(join(checkout, 'build', file), { force: true })
}

describe('a fresh checkout', () => {
  let checkout: string
  let launcher: string

  beforeEach(context => {
    checkout = makeCheckout(`fresh ${context.task.id}`)
    launcher = join(checkout, 'savepoint')
  })

  it('builds once, says so on stderr only, and passes arguments through', () => {
    removeCompiled(checkout)
    const first = run(launcher, ['a b', '', '--json'])
    expect(first.stderr).toBe('savepoint: building…\n')
    expect(JSON.parse(first.stdout as string).args).toEqual(['a b', '', '--json'])
    expect(readdirSync(join(checkout, 'build'))).toEqual(expect.arrayContaining(compiledFiles))
    expect(run(launcher)).toMatchObject({ status: 0, stderr: '' })
  })

  it('leaves the standard input to the command', () => {
    writeFileSync(join(checkout, 'src/cli/main.ts'), 'process.stdin.pipe(process.stdout)\n')
    expect(run(launcher, [], { input: 'for the command' })).toMatchObject({ status: 0, stdout: 'for the command' })
  })

  it('builds again after an edit, a new file and a removed one, and after nothing else', () => {
    run(launcher)
    const again = () => run(launcher).stderr
    appendFileSync(join(checkout, 'src/cli/main.ts'), 'console.log("edited")\n')
    expect(run(launcher)).toMatchObject({ stdout: expect.stringContaining('edited'), stderr: 'savepoint: building…\n' })
    expect(again()).toBe('')
    writeFileSync(join(checkout, 'src/new.ts'), 'export {}\n')
    expect(again()).toBe('savepoint: building…\n')
    rmSync(join(checkout, 'src/new.ts'))
    expect(again()).toBe('savepoint: building…\n')
    writeFileSync(join(checkout, 'notes.txt'), 'no source')
    expect(again()).toBe('')
    rmSync(join(checkout, 'dist/cli.cjs'))
    expect(again()).toBe('savepoint: building…\n')
  })

  it('starts without what V8 compiled at the build', () => {
    run(launcher)
    for (const name of readdirSync(join(checkout, 'dist')).filter(name => name.endsWith('.cache')))
      rmSync(join(checkout, 'dist', name))
    expect(run(launcher, ['x'])).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('"x"') })
  })

  it('builds where there is no directory for temporary files', () => {
    const env = { ...process.env, TMPDIR: join(checkout, 'missing') }
    expect(run(launcher, ['x'], { env })).toMatchObject({ status: 0, stderr: 'savepoint: building…\n' })
    expect(readdirSync(join(checkout, 'dist')).filter(name => name.startsWith('build-'))).toEqual([])
  })

  it('does not build at each start when a source is dated in the future', () => {
    const tomorrow = Date.now() / 1000 + 86_400
    utimesSync(join(checkout, 'src/index.ts'), tomorrow, tomorrow)
    run(launcher)
    expect(run(launcher).stderr).toBe('')
  })

  it('is built by one of several first uses at once', async () => {
    const uses = await Promise.all(Array.from({ length: 4 }, () => promisify(execFile)(launcher, ['x'])))
    expect(uses.map(use => JSON.parse(use.stdout).args)).toEqual(Array(4).fill(['x']))
    const said = uses.map(use => use.stderr).join('')
    expect(said.split('\n').filter(line => line === 'savepoint: building…')).toHaveLength(1)
  })

  it('takes over from a first use that was killed', async () => {
    const lock = join(checkout, 'build/lock')
    writeFileSync(lock, '')
    const holder = spawn('flock', [lock, 'sh', '-c', 'echo locked; exec sleep 600'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    await firstOutput(holder, 'stdout')
    const waiting = spawn(launcher, ['x'], { stdio: ['ignore', 'pipe', 'pipe'] })
    expect(await firstOutput(waiting, 'stderr')).toContain('waiting for another process')
    process.kill(-holder.pid!, 'SIGKILL')
    const [code] = await once(waiting, 'exit')
    expect(code).toBe(0)
  })

  it('becomes node, so that a signal reaches the command itself', async () => {
    run(launcher)
    const child = spawn(launcher, ['wait'], { stdio: ['ignore', 'pipe', 'pipe'] })
    expect(JSON.parse(await firstOutput(child, 'stdout')).pid).toBe(child.pid)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([null, 'SIGTERM'])
  })

  it('runs for a user who cannot write to it, also when it has changed since', async context => {
    if (process.getuid?.() !== 0) {
      chmodSync(checkout, 0o755)
      return context.skip('needs root, to become somebody else')
    }
    const asNobody = (args: string[]) => run(launcher, args, { uid: NOBODY, gid: NOBODY, cwd: '/' })
    expect(asNobody(['x'])).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^savepoint: Cannot build .*\n$/),
    })
    expect(asNobody(['run', '--', 'true']).status).toBe(125)
    run(launcher)
    expect(asNobody(['x'])).toMatchObject({ status: 0, stderr: '', stdout: expect.stringContaining('"x"') })
    appendFileSync(join(checkout, 'src/index.ts'), '// changed\n')
    expect(asNobody(['x'])).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('running the older build'),
      stdout: expect.stringContaining('"x"'),
    })
    expect(statSync(join(checkout, 'build/ready')).uid).toBe(0)
  })

  it('says in one sentence that there is no compiler, and builds nothing', () => {
    removeCompiled(checkout)
    const failed = run(launcher, ['x'], { env: { ...process.env, CC: 'no-such-compiler' } })
    expect(failed).toMatchObject({ status: 1, stdout: '' })
    expect(failed.stderr).toMatch(
      /^savepoint: building…\nsavepoint: Cannot build the native addon: [^\n]*compiler[^\n]*\n$/,
    )
    expect(existsSync(join(checkout, 'build/ready'))).toBe(false)
    expect(run(launcher, ['x']).status).toBe(0)
  })

  it('shows the output of a build that fails, and does not run the older one', () => {
    run(launcher)
    appendFileSync(join(checkout, 'src/cli/main.ts'), 'this is no program\n')
    const failed = run(launcher, ['x'])
    expect(failed).toMatchObject({ status: 1, stdout: '' })
    expect(failed.stderr).toContain('main.ts')
    expect(failed.stderr).toMatch(/savepoint: Cannot build savepoint: the build failed, see above \(.*setup\.log\)\n$/)
  })

  it.each([
    ['no node', [], /Cannot install dependencies: there is no node; /],
    ['no npm', ['node'], /Cannot install dependencies: there is no npm; /],
    ['an old node', ['old-node', 'npm'], /Cannot install dependencies: node v12\.22\.0 is too old; /],
    ['no network', ['node', 'npm'], /Cannot install dependencies: the npm registry cannot be reached; /],
  ])('says in one sentence that there is %s', (_, programs, sentence) => {
    rmSync(join(checkout, 'node_modules'))
    const bin = join(checkout, 'bin')
    mkdirSync(bin)
    for (const name of [
      'cat',
      'cmp',
      'cp',
      'dirname',
      'find',
      'flock',
      'grep',
      'head',
      'mkdir',
      'readlink',
      'sh',
      'tail',
    ]) {
      symlinkSync(
        run('sh', ['-c', `command -v ${name}`])
          .stdout!.toString()
          .trim(),
        join(bin, name),
      )
    }
    const write = (name: string, text: string) => writeFileSync(join(bin, name), text, { mode: 0o755 })
    if (programs.includes('node')) symlinkSync(process.execPath, join(bin, 'node'))
    if (programs.includes('old-node')) {
      write('node', '#!/bin/sh\ncase $1 in -p) echo 12 ;; *) echo v12.22.0 ;; esac\n')
    }
    if (programs.includes('npm')) write('npm', '#!/bin/sh\necho "npm error code ENOTFOUND"\nexit 1\n')
    const { status, stdout, stderr } = run(join(checkout, 'savepoint'), ['x'], { env: { PATH: bin } })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect((stderr as string).trimEnd().split('\n').at(-1)).toMatch(sentence)
  })

  it('is ready at its first start also as an installed package, which has no lock file', () => {
    for (const path of ['node_modules', 'package-lock.json', 'build/installed-lock.json']) rmSync(join(checkout, path))
    const bin = join(checkout, 'bin')
    mkdirSync(bin)
    writeFileSync(join(bin, 'npm'), `#!/bin/sh\nln -s '${root}node_modules' node_modules\n`, { mode: 0o755 })
    const { status, stdout } = run(launcher, ['x'], { env: { ...process.env, PATH: `${bin}:${process.env.PATH}` } })
    expect([status, JSON.parse(stdout as string).args]).toEqual([0, ['x']])
  })

  it('writes nothing outside build and dist', () => {
    const before = readdirSync(checkout)
    run(launcher)
    expect(readdirSync(checkout).filter(name => !before.includes(name))).toEqual(['dist'])
  })
})

async function firstOutput(child: ChildProcess, stream: 'stdout' | 'stderr'): Promise<string> {
  const [data] = await once(child[stream]!, 'data')
  return String(data)
}
