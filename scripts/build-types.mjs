// Writes the declarations of the library (src/index.ts and what it reaches) to dist/types. Not needed for running: does
// nothing where TypeScript is not installed. Type errors are for scripts/check.sh to report, not a reason to fail here.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = join(root, 'node_modules/typescript/bin/tsc')

if (existsSync(compiler)) {
  const config = join(root, 'build/tsconfig.types.json')
  mkdirSync(join(root, 'build'), { recursive: true })
  writeFileSync(
    config,
    JSON.stringify({
      extends: '../tsconfig.json',
      compilerOptions: {
        noEmit: false,
        noEmitOnError: false,
        declaration: true,
        emitDeclarationOnly: true,
        rootDir: '../src',
        outDir: '../dist/types',
      },
      files: ['../src/index.ts'],
      include: [],
    }),
  )
  spawnSync(process.execPath, [compiler, '-p', config], { cwd: root, stdio: 'inherit' })
}
