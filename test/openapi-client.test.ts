/** A client that a well-known generator makes from /openapi.json: its types hold, and it drives a real daemon. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'
import { generate } from 'openapi-typescript-codegen'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { endDaemons, startDaemon } from './support/daemon.ts'
import { Workspace } from './support/workspace.ts'

const TOKEN = 'a token of this test'

let space: Workspace
let url: string
/** Where the client is. */
let made: string
beforeAll(async () => {
  space = new Workspace('work', { SAVEPOINT_HTTP_TOKEN: TOKEN })
  space.write('a', 'one\n')
  const daemon = await startDaemon(space, { args: ['--http', '0'] })
  url = daemon.http!
  made = join(space.base, 'generated')
  mkdirSync(made)
  const input = join(made, 'openapi.json')
  writeFileSync(input, await (await fetch(`${url}/openapi.json`)).text())
  await generate({ input, output: join(made, 'client'), httpClient: 'fetch', useUnionTypes: true, useOptions: true })
  writeFileSync(join(made, 'driver.ts'), driver)
})
afterAll(async () => {
  await endDaemons()
  space.remove()
})

/** What the author of a program would write. It is type-checked; what would not be noticed with loose types is expected to fail. */
const driver = `
import { ApiError, DestructiveService, OpenAPI, ReadService, WriteService } from './client'
import type { ExecEvents, Problem, Snapshot, TimelineEvent } from './client'

declare const process: { argv: string[] }
const [base, token] = process.argv.slice(2)
OpenAPI.BASE = base!
OpenAPI.TOKEN = token!

const done = <T>(answer: T | Problem): T => answer as T
async function problemOf(call: Promise<unknown>): Promise<Problem> {
  try {
    await call
  } catch (error) {
    if (error instanceof ApiError) return error.body as Problem
    throw error
  }
  throw new Error('it was not refused')
}

/** The parameters and answers have types: none of this passes for right. */
function wrong(snapshot: Snapshot, event: TimelineEvent): void {
  // @ts-expect-error a label is a text
  WriteService.snapshot({ requestBody: { label: 7 } })
  // @ts-expect-error there is no such parameter
  DestructiveService.rollback({ requestBody: { snapshot: 'first', dryrun: true } })
  // @ts-expect-error what is to be rolled back to must be said
  DestructiveService.rollback({ requestBody: { dry_run: true } })
  // @ts-expect-error it must be called with something
  DestructiveService.rollback({})
  // @ts-expect-error there is no such type of snapshot
  snapshot.type === 'automatic'
  // @ts-expect-error only some events have a snapshot
  event.snapshot
  if (event.kind === 'run') event.exit_code satisfies number | null
}
void wrong

async function main() {
  const taken = done(await WriteService.snapshot({ requestBody: { label: 'first' } }))
  const byQuery = done(await ReadService.getSnapshots({ limit: 1 }))
  const byBody = done(await ReadService.snapshots({ requestBody: { limit: 1 } }))
  const read = done(await ReadService.getRead({ snapshot: 'first', path: 'a' }))
  const ended = done(await DestructiveService.exec({ requestBody: { cmd: 'echo two > a; exit 3' } }))
  const differences = done(await ReadService.getDiff({ from: 'first' }))
  const undone = done(await DestructiveService.undo({}))

  OpenAPI.HEADERS = { Accept: 'text/event-stream' }
  const cmd = ['sh', '-c', 'echo out; echo err >&2; echo three > a']
  const text = (await DestructiveService.exec({ requestBody: { cmd } })) as unknown
  OpenAPI.HEADERS = undefined
  const events = String(text)
    .split('\\n\\n')
    .filter(event => event !== '')
    .map(event => JSON.parse(/^data: (.*)$/m.exec(event)![1]!) as ExecEvents)
  const output = events.map(event => ('stdout' in event ? event.stdout : '')).join('')

  const refused = await problemOf(DestructiveService.rollback({ requestBody: { snapshot: 'nothing' } }))
  const rolledBack = done(await DestructiveService.rollback({ requestBody: { snapshot: 'first' } }))
  OpenAPI.TOKEN = 'another'
  const stranger = await problemOf(ReadService.getHead())
  console.log(
    JSON.stringify({
      same: [byQuery[0]?.id === taken.id, byBody[0]?.id === taken.id],
      content: read.content,
      ended: [ended.exit, ended.counts.modified],
      differences: differences.changes.map(({ path, kind }) => [path, kind]),
      undone: undone.restore?.files.replaced,
      output,
      last: events.at(-1),
      refused: [refused.code, refused.status, refused.hint],
      rolledBack: rolledBack.files.replaced,
      stranger: stranger.status,
    }),
  )
}
void main()
`

it('every type is known: nothing but the details of an error is left open', () => {
  const files = ['models', 'services'].flatMap(folder =>
    readdirSync(join(made, 'client', folder)).map(name => join(made, 'client', folder, name)),
  )
  const open = files.flatMap(file => readFileSync(file, 'utf8').match(/^ *[\w?]+: .*\b(any|unknown)\b[^'].*$/gm) ?? [])
  expect(files.length).toBeGreaterThan(40)
  expect([...new Set(open.map(line => line.trim()))]).toEqual(['data?: (Record<string, any> | null);'])
})

it('what is generated, and what uses it, is right to the compiler', () => {
  const tsc = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace('package.json', 'bin/tsc')
  const options = '--strict --noEmit --skipLibCheck --target es2023 --module preserve --lib es2023,dom'.split(' ')
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...options, 'driver.ts'], {
    cwd: made,
    encoding: 'utf8',
  })
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
})

it('it reads, changes, runs commands with what they write, and gets problems', async () => {
  const outfile = join(made, 'driver.mjs')
  await build({ entryPoints: [join(made, 'driver.ts')], outfile, bundle: true, format: 'esm', platform: 'node' })
  const { stdout, stderr } = spawnSync(process.execPath, [outfile, url, TOKEN], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({
    same: [true, true],
    content: 'one\n',
    ended: [3, 1],
    differences: [['a', 'modified']],
    undone: 1,
    output: 'out\n',
    last: expect.objectContaining({ ok: true, exit: 0, counts: { added: 0, modified: 1, deleted: 0 } }),
    refused: ['snapshot.unknown', 404, expect.any(String)],
    rolledBack: 1,
    stranger: 401,
  })
  expect(space.read('a')).toBe('one\n')
})
