/** The bundle that `import { open } from 'savepoint'` loads. */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { builtCommand, checkout, savepoint } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

const bundle = join(checkout, 'dist/index.js')
const quiet = '--disable-warning=ExperimentalWarning'

function load(node: string[], script: string) {
  const [program, ...args] = node
  return spawnSync(program!, [...args, '--input-type=module', '-e', script], { encoding: 'utf8' })
}
const importing = `const { open } = await import(${JSON.stringify(pathToFileURL(bundle).href)}); console.log(typeof open)`

it('is imported and required', () => {
  expect(load([process.execPath, quiet], importing).stdout).toBe('function\n')
  const script = `console.log(typeof require(${JSON.stringify(bundle)}).open)`
  expect(spawnSync(process.execPath, [quiet, '-e', script], { encoding: 'utf8' }).stdout).toBe('function\n')
})

/** A Node that is too old, if the machine has one, as machines have for which the launcher brings its own. */
const oldNode = (process.env.PATH ?? '')
  .split(delimiter)
  .map(directory => join(directory, 'node'))
  .find(file => /^v(1\d|20|21)\./.test(spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout ?? ''))

const pretend = (version: string) =>
  `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`

it.each([
  oldNode === undefined ? [process.execPath, '--import', pretend('20.11.0')] : [oldNode],
  [process.execPath, '--import', pretend('22.17.1')],
])('says in one sentence which Node it needs to %s', (...node) => {
  const caught = `import(${JSON.stringify(pathToFileURL(bundle).href)}).catch(({ name, code, message }) => console.log(name, code, message))`
  const { stdout, stderr } = load(node, caught)
  expect({ stdout, stderr }).toEqual({
    stdout: expect.stringMatching(
      /^SavepointError unsupported Cannot load Savepoint in Node \d+\.\d+\.\d+: it needs Node 22\.18 or newer\n$/,
    ),
    stderr: '',
  })
})

describe('what V8 had compiled when the program was built', () => {
  const program = readdirSync(join(checkout, 'dist')).find(name =>
    readFileSync(join(checkout, 'dist/cli.cjs'), 'utf8').includes(`'${name}'`),
  )!
  const [node, ...others] = builtCommand
  const short = others.slice(0, -1)
  const long = ['--disable-warning=ExperimentalWarning']
  /** Says on stderr whether V8 has refused it; undefined: it was not given to V8. The program is the first that is compiled. */
  const telling = `data:text/javascript,${encodeURIComponent(`
    const vm = process.getBuiltinModule('vm'), { Script } = vm
    vm.Script = class extends Script {
      constructor(text, options) { super(text, options); console.error(String(this.cachedDataRejected)) }
    }`)}`
  const start = (flags: string[], directory = checkout) => {
    const args = [...flags, '--import', telling, join(directory, 'dist/cli.cjs'), 'help', '--json']
    const { status, stderr } = spawnSync(node!, args, { encoding: 'utf8' })
    return { status, isRefused: stderr.split('\n')[0] }
  }

  it.each([
    ['short', short],
    ['long', long],
  ])('is taken: %s', (_, flags) => expect(start(flags)).toEqual({ status: 0, isRefused: 'false' }))

  it('is refused where the flags are others, which is no harm', () => {
    expect(start([...short, '--no-opt'])).toEqual({ status: 0, isRefused: 'true' })
  })

  it('is not given to V8, which would crash, where bits of it have changed, or some of it is missing', () => {
    const copy = mkdtempSync(join(tmpdir(), 'savepoint-test-'))
    try {
      mkdirSync(join(copy, 'dist'))
      symlinkSync(join(checkout, 'build'), join(copy, 'build'))
      for (const name of ['cli.cjs', program]) copyFileSync(join(checkout, 'dist', name), join(copy, 'dist', name))
      const cache = readFileSync(join(checkout, 'dist', `${program}.short.cache`))
      const startWith = (bytes: Buffer) => {
        writeFileSync(join(copy, 'dist', `${program}.short.cache`), bytes)
        return start(short, copy)
      }
      expect(startWith(cache)).toEqual({ status: 0, isRefused: 'false' })
      const flipped = Buffer.from(cache)
      for (let at = 1000; at < flipped.length; at += 10_000) flipped[at]! ^= 4
      for (const bytes of [flipped, cache.subarray(0, -1000), cache.subarray(0, 10), Buffer.alloc(0)])
        expect(startWith(bytes)).toEqual({ status: 0, isRefused: 'undefined' })
    } finally {
      rmSync(copy, { recursive: true })
    }
  })
})

describe('zod, which takes as long to load as most commands', () => {
  /** Says on descriptor 3 at the end whether it was loaded: the program is one file, which has its text in any case. */
  const watching = `data:text/javascript,${encodeURIComponent(`
    import { writeSync } from 'node:fs'
    process.on('exit', () => writeSync(3, String('__zod_globalConfig' in globalThis)))`)}`

  it.each([
    [['head'], false],
    [['snapshot'], false],
    [['run', '--', 'true'], false],
    [['ctl', 'head'], true],
  ])('%j loads it: %s', (args, isLoaded) => {
    const space = new Workspace()
    space.sh('echo a > a')
    savepoint(space, ['snapshot'])
    const [program, ...rest] = builtCommand
    const { output, status } = spawnSync(program!, ['--import', watching, ...rest, ...args], {
      cwd: space.dir,
      env: space.env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    })
    space.remove()
    expect({ status, isLoaded: output[3] }).toEqual({ status: 0, isLoaded: String(isLoaded) })
  })
})
