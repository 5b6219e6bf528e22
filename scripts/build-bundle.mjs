// Bundles the CLI, the library and the workers with esbuild into dist/. Everything lies side by side there, because code
// finds its workers and the addon relative to the file that it was bundled into.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { makeCodeCache } from './code-cache.mjs'

const KEEP_OLD_CHUNKS_MS = 7 * 24 * 3600 * 1000

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')

/**
 * Node's modules are taken as objects, not imported: an import evaluates every export of the module, among them getters
 * that load half of Node (fs/promises, TextDecoder, util.diff), and that at each start. Of the exports that are named
 * here esbuild keeps those that are used. What modules have that most commands never need stands for theirs, which are
 * loaded when one is called, made or asked for something: node:zlib takes 9 ms, node:crypto and node:fs/promises 5.
 */
const rarelyCalled = /^node:(child_process|crypto|fs\/promises|module|net|readline|stream|tty|util|vm|zlib)\b/
const STAND_IN = `const standIn = name => new Proxy(function () {}, {
  get: (_, key) => load()[name][key],
  construct: (_, values, made) => Reflect.construct(load()[name], values, made),
})`
const builtins = {
  name: 'builtins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, kind }) =>
      kind === 'require-call' && path !== 'node:child_process'
        ? { external: true }
        : { path, namespace: kind === 'require-call' ? 'required' : 'builtin', sideEffects: false },
    )
    // Commander takes it for something that we do not use.
    onLoad({ filter: /.*/, namespace: 'required' }, ({ path }) => ({
      contents: `exports.spawn = (...values) => process.getBuiltinModule('${path}').spawn(...values)`,
    }))
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      const module = process.getBuiltinModule(path)
      const names = Object.keys(module).filter(name => /^[A-Za-z]\w*$/.test(name))
      const isFunction = name => /^[a-z]/.test(name) && typeof module[name] === 'function'
      const isObject = name => module[name] !== null && /^(?:object|function)$/.test(typeof module[name])
      const takeLater = name =>
        isFunction(name) ? `(...values) => load().${name}(...values)` : isObject(name) && `standIn('${name}')`
      const take = name => (rarelyCalled.test(path) && takeLater(name)) || `take('${name}')`
      return {
        contents: [
          `const load = () => process.getBuiltinModule('${path}')`,
          'const take = name => load()[name]',
          STAND_IN,
          'export default /* @__PURE__ */ load()',
          ...names.map(name => `export const ${name} = /* @__PURE__ */ ${take(name)}`),
        ].join('\n'),
      }
    })
  },
}

const options = {
  plugins: [builtins],
  absWorkingDir: root,
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  // Not identifiers: names stand in reports of bugs, and to keep them beside shorter ones takes 4 ms of each start.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
  logLevel: 'warning',
}
const stop = () => process.exit(1) // esbuild has printed what is wrong
const { metafile } = await build({
  ...options,
  entryPoints: { index: 'src/index.ts', 'restore-worker': 'src/targets/dir/restore-worker.ts' },
  splitting: true,
  chunkNames: 'chunk-[hash]',
  metafile: true,
}).catch(stop)
// One file each: of 200 chunks most commands would need 50, and to find those one after the other takes 10 to 40 ms of each start.
for (const [name, file] of Object.entries({
  'api-worker-program': 'src/api/api-worker.ts',
  'left-trace-main': 'src/engine/left-trace-main.ts',
}))
  await build({ ...options, entryPoints: { [name]: file } }).catch(stop)
// A function, so that V8 can be given what it made of it when the program was built: scripts/start-program.cjs. What it made of
// one text it would believe of another of the same length: hence the hash in the name.
const program = await build({
  ...options,
  entryPoints: { program: 'src/cli/main.ts' },
  entryNames: '[name]-[hash]',
  format: 'cjs',
  banner: { js: '(function (require, module, __url) {' },
  footer: { js: '})' },
  define: { 'import.meta.url': '__url' },
  metafile: true,
}).catch(stop)
const programFile = basename(Object.keys(program.metafile.outputs)[0])
if (/[^\0-\x7f]/.test(readFileSync(join(dist, programFile), 'latin1')))
  throw new Error('scripts/start-program.cjs reads ASCII')
const flags = (process.env.NODE_FLAGS ?? '').split(' ').filter(word => word !== '')
makeCodeCache(join(dist, programFile), flags)

/** Whole or not at all: another process may be starting. */
function writeDist(name, text) {
  writeFileSync(join(dist, `${name}.new`), text)
  renameSync(join(dist, `${name}.new`), join(dist, name))
}
const startFile = join(dist, 'cli.cjs')
const formerStart = existsSync(startFile) ? readFileSync(startFile, 'utf8') : ''
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const start = readFileSync(join(root, 'scripts/start-program.cjs'), 'utf8')
const words = { PROGRAM: programFile, VERSION: version, FLAG: flags[0] ?? '' }
writeDist(
  'cli.cjs',
  start.replace(/'(PROGRAM|VERSION|FLAG)'/g, (_, word) => `'${words[word]}'`),
)
writeDist(
  'api-worker.js',
  `import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
enableCompileCache(fileURLToPath(new URL('../build/compile-cache', import.meta.url)))
await import('./api-worker-program.js')
`,
)

// A process that was started before this build may be about to read the program of that time, and may yet load a chunk.
const made = new Set(Object.keys(metafile.outputs).map(file => basename(file)))
const needed = `'${programFile}' ${formerStart}`
const isNeeded = name => needed.includes(`'${name.replace(/\.(short|long)\.cache$/, '')}'`)
const isPast = file => Date.now() - statSync(file).mtimeMs > KEEP_OLD_CHUNKS_MS
for (const name of readdirSync(dist)) {
  const file = join(dist, name)
  const isOld = /^program\b/.test(name) ? !isNeeded(name) : name.startsWith('chunk-') && !made.has(name) && isPast(file)
  if (isOld) rmSync(file)
}
