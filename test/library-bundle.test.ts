/** The bundle that `import { open } from 'savepoint'` loads. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
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
  const isRefused = (flags: string[], cache: string) => {
    const [node] = builtCommand
    const text = `const { readFileSync } = process.getBuiltinModule('fs'), file = process.argv[1]
      const cachedData = readFileSync(file + process.argv[2])
      console.log(new (process.getBuiltinModule('vm').Script)(readFileSync(file, 'latin1'), { cachedData }).cachedDataRejected)`
    return spawnSync(node!, [...flags, '-e', text, join(checkout, 'dist', program), cache], { encoding: 'utf8' }).stdout
  }
  const short = builtCommand.slice(1, -1)

  it.each([
    ['.short.cache', short],
    ['.long.cache', ['--disable-warning=ExperimentalWarning']],
  ])('is taken: %s', (cache, flags) => expect(isRefused(flags, cache)).toBe('false\n'))

  it('is refused where the flags are others, which is no harm', () => {
    expect(isRefused([], '.short.cache')).toBe('true\n')
    const [node, ...args] = builtCommand
    const others = args.map(flag => flag.replace(/^(--max-semi-space-size)=.*/, '$1=4'))
    expect(spawnSync(node!, [...others, 'help', '--json'], { encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    })
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
