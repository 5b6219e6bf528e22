/** A directory for each test of the native addon, opened as its root, and how to look at what the addon does there. */
import { execFileSync, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeEach } from 'vitest'
import { type Addon, addon } from '../../src/native/addon.ts'
import { isRoot } from './machine.ts'
import { encodeXattrs } from './native-xattrs.ts'

const packageRoot = fileURLToPath(new URL('../../', import.meta.url))
export const addonFile = join(packageRoot, 'build/savepoint.node')
const scratch = fs.mkdtempSync(join(tmpdir(), 'savepoint-addon-'))

/** Of the running test. */
export let directory: string
export let root: number

beforeEach(() => {
  directory = fs.mkdtempSync(join(scratch, 't'))
  root = addon.openRoot(Buffer.from(directory))
})
afterEach(() => addon.close(root))
// Not fs.rm: it cannot remove paths longer than PATH_MAX.
afterAll(() => execFileSync('rm', ['-rf', scratch]))

/** The addon, and the same sources without openat2 and fchmodat2, as on an old kernel or in a sandbox that refuses them. */
export function addonBuilds(): [string, Addon][] {
  const file = join(scratch, 'fallback.node')
  const env = { ...process.env, CFLAGS: '-DSAVEPOINT_FORCE_FALLBACK' }
  execFileSync('sh', [join(packageRoot, 'scripts/build-addon.sh'), file], { env, stdio: 'pipe' })
  return [
    ['with openat2', addon],
    ['without openat2', createRequire(import.meta.url)(file) as Addon],
  ]
}

export const inside = (name: string | Buffer) => Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name)])
export const list = (...paths: (string | Buffer)[]) =>
  Buffer.concat(paths.flatMap((path, i) => [Buffer.from(i === 0 ? '' : '\0'), Buffer.from(path)]))

export function errorOf(action: () => unknown): NodeJS.ErrnoException {
  try {
    action()
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  throw new Error('nothing was thrown')
}
export const codeOf = (action: () => unknown) => errorOf(action).code

export const openDescriptors = () => fs.readdirSync('/proc/self/fd').length

/** Whether this filesystem has user xattrs. */
export function userXattrs(): boolean {
  fs.writeFileSync(inside('probe'), '')
  const refused = addon.setXattrs(root, 'probe', encodeXattrs({ 'user.probe': Buffer.from('1') }))
  fs.unlinkSync(inside('probe'))
  return refused === 0
}

/** Runs `body` (an ES module that finds the addon as `addon`) in a child, as an unprivileged user when we are root. */
export function runUnprivileged(body: string): unknown {
  if (isRoot) {
    fs.chmodSync(scratch, 0o755)
    fs.chownSync(directory, 65534, 65534)
  }
  // The addon is copied: the checkout may lie where others cannot look.
  const copy = join(scratch, 'unprivileged.node')
  fs.copyFileSync(addonFile, copy)
  fs.chmodSync(copy, 0o755)
  const code = `import { createRequire } from 'node:module'
    const addon = createRequire('file:///')(${JSON.stringify(copy)})
    const root = addon.openRoot(Buffer.from(${JSON.stringify(directory)}))
    ${body}`
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: '/',
    encoding: 'utf8',
    ...(isRoot ? { uid: 65534, gid: 65534 } : {}),
  })
  if (child.status !== 0) throw new Error(child.stderr || String(child.error))
  return JSON.parse(child.stdout)
}
