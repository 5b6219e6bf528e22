// A vitest reporter: lists every skipped test with its reason, and writes "passed failed skipped" to
// build/test-summary, then a line for each failure: `failed: FILE > TEST: first line of the error`. From them
// scripts/test.sh makes the end of its report.
//
// A test that failed, and passed when it was tried again (CI only), is no failure, and a defect all the same, of itself or of
// the product: `unsteady: FILE > TEST: first line of the error`.
//
// The reason of a skip is the note of `ctx.skip('needs …')`, or `[needs …]` in the title. With CI=true only a machine
// that is another one by its nature excuses a skip: another operating system, another processor, or a kernel without
// the feature. Any other skip (a tool that is missing, root that is missing, no reason at all) counts as failed there,
// because CI can and must provide it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

const LISTED_SKIPS = 60
const LISTED_FAILURES = 40
const LONGEST_ERROR = 200
const ACCEPTED = /\bneeds\b.*\b(macos|windows|freebsd|linux|arm64|x64|kernel)\b/i
const strict = process.env.CI === 'true'

export default class SummaryReporter {
  constructor({ file = fileURLToPath(new URL('../build/test-summary', import.meta.url)) } = {}) {
    this.file = file
  }

  onTestRunEnd(modules, unhandledErrors) {
    const count = { passed: 0, skipped: 0 }
    const skips = []
    const failures = []
    const unsteady = []
    const fail = (where, error) => failures.push(`failed: ${where.replace(/\s+/g, ' ')}: ${firstLine(error)}`)
    for (const error of unhandledErrors) fail('outside of any test', error)
    for (const module of modules) {
      const file = module.relativeModuleId
      // A file that could not be loaded, or a hook that failed, has errors that belong to no test.
      for (const error of module.errors()) fail(file, error)
      for (const suite of module.children.allSuites()) {
        for (const error of suite.errors()) fail(`${file} > ${suite.fullName}`, error)
      }
      for (const test of module.children.allTests()) {
        const { state, note, errors } = test.result()
        const name = `${file} > ${test.fullName}`
        if (state === 'passed') {
          count.passed++
          if (test.diagnostic()?.flaky)
            unsteady.push(`unsteady: ${name.replace(/\s+/g, ' ')}: ${firstLine(errors?.[0] ?? {})}`)
        } else if (state === 'skipped') {
          const reason = note ?? /[[(](?:skipped: )?(needs [^\])]+)[\])]/.exec(test.fullName)?.[1] ?? 'no reason given'
          if (strict && !ACCEPTED.test(reason)) fail(name, { message: `skip not accepted: ${reason}` })
          else {
            count.skipped++
            skips.push(`skipped  ${name}: ${reason}`)
          }
        } else fail(name, errors?.[0] ?? { message: `ended as ${state}` })
      }
    }
    if (modules.length === 0) fail('vitest', { message: 'no test was found' })
    for (const line of skips.slice(0, LISTED_SKIPS)) console.log(line)
    if (skips.length > LISTED_SKIPS) console.log(`… and ${skips.length - LISTED_SKIPS} more skipped`)
    const listed = failures.slice(0, LISTED_FAILURES)
    if (failures.length > listed.length) listed.push(`… and ${failures.length - listed.length} more failed`)
    mkdirSync(dirname(this.file), { recursive: true })
    writeFileSync(
      this.file,
      [`${count.passed} ${failures.length} ${count.skipped}`, ...unsteady, ...listed].map(line => `${line}\n`).join(''),
    )
  }
}

function firstLine({ message, name }) {
  const line = stripVTControlCharacters(String(message ?? name ?? 'no reason given'))
    .trim()
    .split('\n', 1)[0]
  return line.length > LONGEST_ERROR ? `${line.slice(0, LONGEST_ERROR)}…` : line
}
