/** The end of the suite's own report: what failed, and what the tests left behind. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

const checkout = join(import.meta.dirname, '..')
let directory: string

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'savepoint-report-')))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('each failure is one line: file, test, and the first line of the error', () => {
  const file = join(directory, 'summary')
  writeFileSync(
    join(directory, 'one.test.ts'),
    `import { afterAll, describe, expect, test } from 'vitest'
     test('good', () => {})
     test('left out [needs macOS]', ctx => ctx.skip())
     test('left out', ctx => ctx.skip())
     describe('of several', () => {
       test('with a\\nname of two lines', () => { throw new Error('first\\nsecond') })
       afterAll(() => { throw new Error('the hook') })
     })`,
  )
  writeFileSync(join(directory, 'two.test.ts'), `import './nowhere.ts'`)
  const reporter = JSON.stringify([join(checkout, 'scripts/summary-reporter.mjs'), { file }])
  writeFileSync(
    join(directory, 'vitest.config.mjs'),
    `export default { root: ${JSON.stringify(directory)}, test: { include: ['*.test.ts'], reporters: [${reporter}] } }`,
  )
  mkdirSync(join(directory, 'node_modules'))
  const vitest = join(checkout, 'node_modules/vitest/vitest.mjs')
  const args = [vitest, 'run', '--config', join(directory, 'vitest.config.mjs')]
  const { status } = spawnSync(process.execPath, args, { cwd: checkout, env: { ...process.env, CI: 'true' } })
  expect(status).toBe(1)
  const [counts, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n')
  expect(counts).toBe('1 4 1')
  expect(lines.sort()).toEqual([
    'failed: one.test.ts > left out: skip not accepted: no reason given',
    'failed: one.test.ts > of several > with a name of two lines: first',
    'failed: one.test.ts > of several: the hook',
    expect.stringMatching(/^failed: two\.test\.ts: .*nowhere\.ts/),
  ])
})

test('what is left of files and processes is named', async () => {
  const script = join(checkout, 'scripts/left-behind.sh')
  const leftBehind = () => spawnSync('sh', [script, directory, '0'], { encoding: 'utf8' }).stdout
  expect(leftBehind()).toBe('')
  writeFileSync(join(directory, 'a\nb'), '')
  const env = { PATH: process.env.PATH, SAVEPOINT_HOME: join(directory, 'home') }
  const children = [spawn('sleep', ['301'], { env }), spawn('sleep', ['302'], { env: {}, cwd: directory })]
  await Promise.all(children.map(child => once(child, 'spawn')))
  try {
    expect(leftBehind().split('\n').sort()).toEqual([
      '',
      'left in the temporary directory: a\\nb',
      ...children.map((child, i) => `still running: ${child.pid} sleep 30${i + 1}`).sort(),
    ])
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
})
