/**
 * What the launcher starts, as dist/cli.cjs. Gives V8 the program together with what it had compiled of it when that was built
 * (scripts/code-cache.mjs): to compile again what a command uses takes a quarter of its time. Another V8, or one that is told other
 * flags, refuses that, and compiles.
 */
'use strict'
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { Script } = require('node:vm')

const args = process.argv.slice(2)
// Nothing needs to be read for that.
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) process.stdout.write(`savepoint ${'VERSION'}\n`)
else start(join(__dirname, 'PROGRAM'))

function start(filename) {
  const cachedData = compiled(`${filename}.${process.execArgv.includes('FLAG') ? 'short' : 'long'}.cache`)
  // It is ASCII.
  const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData })
  script.runInThisContext()(require, module, pathToFileURL(filename).href)
}

/** V8 believes what it is given: with a bit of it changed on the disk it would crash. So its BLAKE3 hash lies behind it. */
function compiled(file) {
  try {
    const bytes = readFileSync(file)
    const data = bytes.subarray(0, -32)
    // The program needs it, too.
    const { hash } = require('../build/savepoint.node')
    return hash(data) === bytes.latin1Slice(data.length) ? data : undefined
  } catch {
    // It could not be made.
    return undefined
  }
}
