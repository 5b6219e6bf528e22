// A vitest reporter: lists every skipped test with its reason, and writes "passed failed skipped" to
// build/test-summary, from which scripts/test.sh makes the closing line.
//
// The reason of a skip is the note of `ctx.skip('needs …')`, or `[needs …]` in the title. With CI=true only a machine
// that is another one by its nature excuses a skip: another operating system, another processor, or a kernel without
// the feature. Any other skip (a tool that is missing, root that is missing, no reason at all) counts as failed there,
// because CI can and must provide it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const LISTED_SKIPS = 60
const ACCEPTED = /\bneeds\b.*\b(macos|windows|freebsd|linux|arm64|x64|kernel)\b/i
const strict = process.env.CI === 'true'

export default class SummaryReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    const skips = []
    for (const module of modules) {
      // A file that could not be loaded, or a hook that failed, has errors that belong to no test.
      count.failed += module.errors().length
      for (const suite of module.children.allSuites()) count.failed += suite.errors().length
      for (const test of module.children.allTests()) {
        const { state, note } = test.result()
        if (state === 'passed') count.passed++
        else if (state === 'skipped') {
          const reason = note ?? /[[(](?:skipped: )?(needs [^\])]+)[\])]/.exec(test.fullName)?.[1]
          const refused = strict && !ACCEPTED.test(reason ?? '')
          count[refused ? 'failed' : 'skipped']++
          skips.push(
            `${refused ? 'SKIP NOT ACCEPTED' : 'skipped'}  ${module.relativeModuleId} > ${test.fullName}: ${reason ?? 'no reason given'}`,
          )
        } else count.failed++
      }
    }
    if (modules.length === 0) count.failed++
    for (const line of skips.slice(0, LISTED_SKIPS)) console.log(line)
    if (skips.length > LISTED_SKIPS) console.log(`… and ${skips.length - LISTED_SKIPS} more skipped`)
    const directory = fileURLToPath(new URL('../build', import.meta.url))
    mkdirSync(directory, { recursive: true })
    writeFileSync(`${directory}/test-summary`, `${count.passed} ${count.failed} ${count.skipped}\n`)
  }
}
