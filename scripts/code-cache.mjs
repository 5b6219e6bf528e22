/**
 * Makes FILE.short.cache and FILE.long.cache beside the program FILE: what V8 compiles when a command is carried out, with the flags
 * of short commands and without, as a daemon is started. Node's own compile cache holds only what is compiled when a file is
 * loaded, not the functions that are then called.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

const TIMEOUT_MS = 20_000
/** Behind what was compiled: V8 does not notice when it is damaged. */
const HASH_BYTES = 32
/** What people wait for: each adds to what the ones before had compiled. */
const RUN = ['run', '-q', '--', 'touch', 'b']
const STATUS = ['status', '-q']

/** `flags`: those of short commands; V8 refuses what was made with others. Without a cache everything works, later. */
export function makeCodeCache(program, flags) {
  const work = makeWork(dirname(program))
  const env = { ...process.env, SAVEPOINT_HOME: join(work, 'home'), XDG_RUNTIME_DIR: work, NODE_OPTIONS: '' }
  const carryOut = (v8, cache, command) => {
    const args = [...v8, fileURLToPath(import.meta.url), program, cache, ...command]
    spawnSync(process.execPath, args, { cwd: work, env, stdio: 'ignore', timeout: TIMEOUT_MS })
  }
  try {
    writeFileSync(join(work, 'a'), '')
    for (const command of [RUN, STATUS]) carryOut(flags, `${program}.short.cache`, command)
    carryOut([], `${program}.long.cache`, STATUS)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Sockets need a short path; what is below `other` can be written as the program was. */
function makeWork(other) {
  try {
    return mkdtempSync(join(tmpdir(), 'savepoint-build-'))
  } catch {
    return mkdtempSync(join(other, 'build-'))
  }
}

/** Carries out a command as scripts/start-program.cjs does, and keeps what was compiled. */
function carryOut(filename, cache) {
  let cachedData
  try {
    cachedData = readFileSync(cache).subarray(0, -HASH_BYTES)
  } catch {
    // The first.
  }
  const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData })
  const require = process.getBuiltinModule('node:module').createRequire(filename)
  process.on('exit', () => {
    const fd = openSync(`${cache}.new`, 'w')
    const data = script.createCachedData()
    const { hash } = require('../build/savepoint.node')
    writeFileSync(fd, Buffer.concat([data, Buffer.from(hash(data), 'latin1')]))
    fsyncSync(fd)
    closeSync(fd)
    renameSync(`${cache}.new`, cache)
  })
  process.argv.splice(1, 3, join(dirname(filename), 'cli.cjs'))
  script.runInThisContext()(require, { exports: {} }, pathToFileURL(filename).href)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) carryOut(process.argv[2], process.argv[3])
