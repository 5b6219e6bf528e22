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
  let cachedData
  try {
    cachedData = readFileSync(`${filename}.${process.execArgv.includes('FLAG') ? 'short' : 'long'}.cache`)
  } catch {
    // It could not be made.
  }
  // It is ASCII.
  const script = new Script(readFileSync(filename, 'latin1'), { filename, cachedData })
  script.runInThisContext()(require, module, pathToFileURL(filename).href)
}
