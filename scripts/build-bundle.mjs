// Bundles the CLI, the library and the workers with esbuild into dist/. Everything lies side by side there, because code
// finds its workers and the addon relative to the file that it was bundled into.
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const KEEP_OLD_CHUNKS_MS = 7 * 24 * 3600 * 1000

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')

/**
 * Node's modules are taken as objects, not imported: an import evaluates every export of the module, among them getters
 * that load half of Node (fs/promises, TextDecoder, util.diff), and that at each start. Of the exports that are named
 * here esbuild keeps those that are used. Functions of modules that most commands never call load theirs when they are
 * called: node:crypto alone takes 5 ms.
 */
const rarelyCalled = /^node:(child_process|crypto|module|net|readline|stream|tty|util|vm|zlib)\b/
const builtins = {
  name: 'builtins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, kind }) =>
      kind === 'require-call' ? { external: true } : { path, namespace: 'builtin', sideEffects: false },
    )
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => {
      const module = process.getBuiltinModule(path)
      const names = Object.keys(module).filter(name => /^[A-Za-z]\w*$/.test(name))
      const isFunction = name => /^[a-z]/.test(name) && typeof module[name] === 'function'
      const take = name =>
        rarelyCalled.test(path) && isFunction(name) ? `(...values) => load().${name}(...values)` : `take('${name}')`
      return {
        contents: [
          `const load = () => process.getBuiltinModule('${path}')`,
          'const take = name => load()[name]',
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
  entryPoints: {
    main: 'src/cli/main.ts',
    index: 'src/index.ts',
    'restore-worker': 'src/targets/dir/restore-worker.ts',
  },
  splitting: true,
  chunkNames: 'chunk-[hash]',
  metafile: true,
}).catch(stop)
// Of the 200 chunks most commands need 50: to find those one after the other takes 10 to 40 ms of each start. To read all of it
// when only the version is asked for would take 10 ms.
await build({
  ...options,
  entryPoints: { program: 'src/cli/main.ts', 'api-worker-program': 'src/api/api-worker.ts' },
}).catch(stop)

/** What is started: V8 keeps the compiled code of the bundle from one start to the next. */
const writeStart = (name, start) =>
  writeFileSync(
    join(dist, name),
    `import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
enableCompileCache(fileURLToPath(new URL('../build/compile-cache', import.meta.url)))
${start}
`,
  )
writeStart(
  'cli.js',
  `const isShort = process.argv.length === 3 && ['--version', '-V'].includes(process.argv[2])
await import(isShort ? './main.js' : './program.js')`,
)
writeStart('api-worker.js', `await import('./api-worker-program.js')`)

// A process that was started before this build may still load a chunk of its own, so those stay for a while.
const made = new Set(Object.keys(metafile.outputs).map(file => basename(file)))
for (const name of readdirSync(dist)) {
  const file = join(dist, name)
  if (name.startsWith('chunk-') && !made.has(name) && Date.now() - statSync(file).mtimeMs > KEEP_OLD_CHUNKS_MS) {
    rmSync(file)
  }
}
