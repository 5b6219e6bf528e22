/** The rules of the repository that a compiler does not know: which way imports point, who may print, what docs name. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** From the top to the bottom: a file imports from its own layer and from lower ones. `index` is src/index.ts. */
const LAYERS = [
  'cli',
  'mcp',
  'api',
  'index',
  'record',
  'engine',
  'targets',
  'backends',
  'tracers',
  'timeline',
  'store',
  'config',
  'files',
  'diff',
  'model',
  'native',
  'errors',
]
/** What a face may see of the rest: the library, bundles, and plain data. */
const CLI_SEES = ['cli', 'mcp', 'api', 'index', 'record', 'diff', 'model', 'errors']
const CLI_SEES_TYPES = ['config']
const MCP_SEES = CLI_SEES.filter(layer => layer !== 'cli' && layer !== 'record')
const API_SEES = MCP_SEES.filter(layer => layer !== 'mcp' && layer !== 'record')

const MAX_LINES = 300
/** Path → why it may be longer. */
const LONG_FILES: Record<string, string> = {}

interface Import {
  from: string
  to: string
  typeOnly: boolean
}

const listFiles = (directory: string): string[] =>
  readdirSync(join(root, directory), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(root, join(entry.parentPath, entry.name)))
    .sort()
const read = (file: string) => readFileSync(join(root, file), 'utf8')

const sources = listFiles('src').filter(file => /\.tsx?$/.test(file))
const code = sources.filter(file => !/\.test\.tsx?$/.test(file))

const layerOf = (file: string) => (file === 'src/index.ts' ? 'index' : file.split('/')[1]!)

/**
 * Static imports and re-exports, `import()`, and files named by `new URL(…, import.meta.url)`, with the extensions that we
 * write (`.js` only occurs in code that we quote).
 */
function importsOf(file: string, text = read(file)): Import[] {
  const pattern =
    /\b(import|export)\s+(type\s)?(?:[^'"();]*?\sfrom\s+)?['"](\.[^'"]+\.(?:ts|json))['"]|\bimport\(\s*['"](\.[^'"]+\.ts)['"]|new URL\(\s*['"](\.[^'"]+\.ts)['"]/g
  return [...text.matchAll(pattern)].map(match => ({
    from: file,
    to: join(dirname(file), (match[3] ?? match[4] ?? match[5])!),
    typeOnly: match[2] !== undefined,
  }))
}

function allowed({ from, to, typeOnly }: Import): boolean {
  if (to === 'package.json') return true
  if (!to.startsWith('src/')) return false
  const [above, below] = [layerOf(from), layerOf(to)]
  if (above === 'mcp') return MCP_SEES.includes(below)
  if (above === 'api') return API_SEES.includes(below)
  if (above === 'cli') return CLI_SEES.includes(below) || (typeOnly && CLI_SEES_TYPES.includes(below))
  return LAYERS.includes(below) && LAYERS.indexOf(above) <= LAYERS.indexOf(below)
}

/** Source without comments, good enough to look for calls. */
const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

describe('layers', () => {
  it('are all known', () => {
    expect(code.filter(file => !LAYERS.includes(layerOf(file)))).toEqual([])
  })

  it('are imported downwards only', () => {
    const wrong = code.flatMap(file => importsOf(file)).filter(one => !allowed(one))
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([])
  })

  it('are read from every kind of import (this test can fail)', () => {
    const text = `import { a } from '../engine/a.ts'
import type {
  B,
} from '../config/b.ts'
export * from '../store/c.ts'
import '../store/d.ts'
const e = await import('../targets/e.ts')
new Worker(new URL('./f.ts', import.meta.url))`
    const found = importsOf('src/cli/x.ts', text)
    expect(found.map(one => one.to)).toEqual([
      'src/engine/a.ts',
      'src/config/b.ts',
      'src/store/c.ts',
      'src/store/d.ts',
      'src/targets/e.ts',
      'src/cli/f.ts',
    ])
    expect(found.filter(allowed).map(one => one.to)).toEqual(['src/config/b.ts', 'src/cli/f.ts'])
    expect(allowed({ from: 'src/store/a.ts', to: 'src/timeline/b.ts', typeOnly: true })).toBe(false)
    expect(allowed({ from: 'src/targets/dir/a.ts', to: 'src/files/b.ts', typeOnly: false })).toBe(true)
  })

  it('name files that exist', () => {
    const missing = code.flatMap(file => importsOf(file)).filter(({ to }) => !existsSync(join(root, to)))
    expect(missing.map(({ from, to }) => `${from} → ${to}`)).toEqual([])
  })
})

describe('the library', () => {
  it('never prints', () => {
    const printing = code
      .filter(file => layerOf(file) !== 'cli')
      .filter(file => /\bconsole\.\w+\(|\bprocess\.(stdout|stderr)\b/.test(withoutComments(read(file))))
    expect(printing).toEqual([])
  })

  it(`has no file of more than ${MAX_LINES} lines`, () => {
    const long = code.filter(file => read(file).split('\n').length - 1 > MAX_LINES)
    expect(long.filter(file => !LONG_FILES[file])).toEqual([])
    expect(Object.keys(LONG_FILES).filter(file => !long.includes(file))).toEqual([])
  })
})

describe('the documents', () => {
  const documents = [
    ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].filter(file => existsSync(join(root, file))),
    ...listFiles('docs').filter(file => file.endsWith('.md')),
  ]
  const PATH =
    /^(?:\.\/)?((?:src|native|scripts|test|bench|docs|\.ci)\/[\w./-]*|[\w-]+\.(?:md|sh|ts|mjs)|package(?:-lock)?\.json|tsconfig\.json|biome\.json|\.npmrc|\.gitignore)$/

  it('name paths that exist', () => {
    const missing = documents.flatMap(document =>
      [...read(document).matchAll(/`([^`\n]+)`/g)]
        .map(match => PATH.exec(match[1]!)?.[1])
        .filter(path => path !== undefined)
        .filter(path => !existsSync(join(root, path)) && !existsSync(join(root, dirname(document), path)))
        .map(path => `${document}: ${path}`),
    )
    expect(missing).toEqual([])
  })

  it('are looked at', () => {
    expect(documents).toContain('CONTRIBUTING.md')
    expect(PATH.test('src/index.ts') && PATH.test('docs/') && PATH.test('.ci/run')).toBe(true)
    expect(PATH.test('build/ready') || PATH.test('src/*.ts') || PATH.test('savepoint run')).toBe(false)
  })
})

describe('the lock file', () => {
  it('names no registry', () => {
    expect(read('package-lock.json')).not.toContain('"resolved"')
  })
})
