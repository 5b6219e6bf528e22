/** Real `git apply` and `patch -p1` read what we write: many random changes per call, compared byte for byte. */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nameOf, parentOf, type Raw, rawToBytes } from '../model/raw-path.ts'
import type { ContentChange } from './content-change.ts'
import { fixtureEntry } from './fixture-entry.ts'
import { unifiedDiffBytes } from './unified.ts'

interface State {
  kind: 'file' | 'link'
  content: Raw
  executable: boolean
}
interface Case {
  name: Raw
  oldName: Raw | undefined
  before: State | undefined
  after: State | undefined
  owner: number
}

const line = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'b', '', '  c', 'd\r', '\r', '\t', '-- x', '++ y', '@@ -1 +1 @@', '\\ no'),
  },
  { weight: 1, arbitrary: fc.array(fc.integer({ min: 1, max: 255 }), { maxLength: 12 }).map(toRaw) },
)
const joinLines = (lines: Raw[], last: string) => lines.map(one => `${one}\n`).join('') + last
const content = fc
  .tuple(fc.array(line, { maxLength: 30 }), fc.constantFrom('', '', 'end', '\r'))
  .map(args => joinLines(...args))
const edit = fc.record({
  at: fc.nat({ max: 60 }),
  remove: fc.nat({ max: 4 }),
  insert: fc.array(line, { maxLength: 3 }),
})
const editedContent = fc
  .tuple(
    fc.array(line, { maxLength: 60 }),
    fc.array(edit, { maxLength: 4 }),
    fc.constantFrom('', 'x'),
    fc.constantFrom('', 'x'),
  )
  .map(([lines, edits, last, nextLast]) => {
    const next = [...lines]
    for (const { at, remove, insert } of edits) next.splice(at, remove, ...insert)
    return [joinLines(lines, last), joinLines(next, nextLast)] as const
  })

const oddBytes = fc.array(
  fc.integer({ min: 1, max: 255 }).filter(byte => byte !== 0x2f),
  { minLength: 1, maxLength: 8 },
)
const oddName = fc
  .oneof(
    fc.constantFrom(
      'plain',
      'with space',
      'a "quoted" one',
      "it's",
      'tab\there',
      'back\\slash',
      'trailing ',
      ' leading',
      'é',
    ),
    oddBytes.map(toRaw),
  )
  .filter(name => !/^\.+$|git/i.test(name))
const target = fc.constantFrom('there', '../up', 'with space', 'n\xfft', 'two\nlines', 'feed\n')
const file = (text: Raw, executable: boolean): State => ({ kind: 'file', content: text, executable })
const link = (to: Raw): State => ({ kind: 'link', content: to, executable: false })

const states: fc.Arbitrary<Omit<Case, 'name' | 'owner'>> = fc
  .tuple(fc.nat({ max: 8 }), editedContent, content, fc.boolean(), fc.boolean(), target, target, oddName)
  .map(([kind, [before, after], other, wasExecutable, isExecutable, oldTarget, newTarget, oldName]) => {
    const none = undefined
    if (kind === 0) return { oldName: none, before: none, after: file(other, isExecutable) }
    if (kind === 1) return { oldName: none, before: file(other, wasExecutable), after: none }
    if (kind === 2) return { oldName, before: file(before, wasExecutable), after: file(after, isExecutable) }
    if (kind === 3)
      return { oldName, before: file(`${before}x`, wasExecutable), after: file(`${before}x`, isExecutable) }
    if (kind === 4) return { oldName: none, before: link(oldTarget), after: link(newTarget) }
    if (kind === 5) return { oldName: none, before: file(other, wasExecutable), after: link(newTarget) }
    if (kind === 6) return { oldName: none, before: link(oldTarget), after: file(other, isExecutable) }
    return { oldName: none, before: file(before, wasExecutable), after: file(after, isExecutable) }
  })
const cases = fc.array(
  fc.tuple(states, oddName, fc.constantFrom(0, 1)).map(([rest, name, owner]): Case => ({ ...rest, name, owner })),
  { minLength: 1, maxLength: 100, size: 'max' },
)

const cleanEnvironment = {
  PATH: process.env.PATH,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  LC_ALL: 'C',
}
interface Program {
  name: string
  command: string[]
  /** What is beyond the program, whoever made the patch. */
  reads(one: Case, patch: Buffer): boolean
}
const programs: Program[] = [
  { name: 'git apply', command: ['git', 'apply', '--whitespace=nowarn'], reads: () => true },
  {
    name: 'patch -p1',
    command: ['patch', '-p1', '--quiet', '--batch'],
    // GNU patch refuses names with line feeds, drops a space at the end of a name, and finds names with other spaces
    // only in `---` and `+++` lines, which a patch without lines lacks.
    reads: ({ name, oldName = '', before, after }, patch) => {
      if (/\n| $/.test(name) || /\n| $/.test(oldName)) return false
      if (!/ /.test(name + oldName)) return true
      const retyped = before && after && before.kind !== after.kind
      return patch.includes('\n@@ ') && !(retyped && (before.content === '' || after.content === ''))
    },
  },
]

describe('the unified diff', () => {
  for (const program of programs) {
    const missing = spawnSync(program.command[0]!, ['--version']).status !== 0
    const check = () => {
      const property = fc.property(cases, fc.constantFrom(3, 3, 1, 10), (batch, context) => {
        expectApplies(program, batch, context)
      })
      fc.assert(property, { numRuns: 20 })
    }
    it.skipIf(missing)(`is applied byte for byte by ${program.name} (skipped where it is not installed)`, check, 60_000)
  }
})

describe.skipIf(spawnSync('git', ['--version']).status !== 0)(
  'a patch without its content (skipped without git)',
  () => {
    const sides = { before: fixtureEntry({ content: 'one' }), after: fixtureEntry({ content: 'two', mode: 0o755 }) }
    const contents = { beforeContent: Buffer.from('a\0'), afterContent: Buffer.from('b\0') }
    for (const [name, change] of Object.entries({ unavailable: sides, binary: { ...sides, ...contents } })) {
      it(`is refused by git apply as a whole: ${name}`, () => {
        const root = mkdtempSync(join(tmpdir(), 'savepoint-apply-'))
        try {
          writeFileSync(join(root, 'x'), 'a\0')
          const input = unifiedDiffBytes({ path: 'x', ...change })
          const done = spawnSync('git', ['apply'], { cwd: root, input, env: cleanEnvironment })
          expect(`${done.stderr}`).toContain('cannot apply binary patch')
          expect(readState(root, 'x').executable).toBe(false)
        } finally {
          rmSync(root, { recursive: true, force: true })
        }
      })
    }
  },
)

function expectApplies({ command, reads }: Program, batch: Case[], context: number): void {
  const root = mkdtempSync(join(tmpdir(), 'savepoint-apply-'))
  try {
    const tried = batch.flatMap((one, i) => {
      const path = `${i}/${one.name}`
      const from = one.oldName === undefined || one.oldName === one.name ? undefined : `${i}/${one.oldName}`
      const patch = unifiedDiffBytes(asChange(one, path, from), { context })
      if (!reads(one, patch)) return []
      mkdirSync(join(root, `${i}`))
      if (one.before) writeState(root, from ?? path, one.before)
      return [{ after: one.after, path, patch }]
    })
    const input = Buffer.concat(tried.map(({ patch }) => patch))
    // Prose alone is no patch.
    if (!input.includes('diff --git')) return
    const done = spawnSync(command[0]!, command.slice(1), { cwd: root, input, env: cleanEnvironment })
    expect(`${done.stdout}${done.stderr}`).toBe('')
    expect(done.status).toBe(0)
    for (const { after, path } of tried) {
      const folder = join(root, parentOf(path))
      const names = existsSync(folder) ? readdirSync(folder, { encoding: 'latin1' }) : []
      expect(names).toEqual(after ? [nameOf(path)] : [])
      if (after) expect(readState(root, path)).toEqual(after)
    }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const pathIn = (root: string, path: Raw) => Buffer.concat([Buffer.from(`${root}/`), rawToBytes(path)])

function writeState(root: string, path: Raw, state: State): void {
  const place = pathIn(root, path)
  if (state.kind === 'link') symlinkSync(rawToBytes(state.content), place)
  else writeFileSync(place, rawToBytes(state.content), { mode: state.executable ? 0o755 : 0o644 })
}

function readState(root: string, path: Raw): State {
  const place = pathIn(root, path)
  const stat = lstatSync(place)
  if (stat.isSymbolicLink()) return link(readlinkSync(place, { encoding: 'latin1' }))
  return file(readFileSync(place, 'latin1'), (stat.mode & 0o100) !== 0)
}

function asChange(one: Case, path: Raw, from: Raw | undefined): ContentChange {
  const entryOf = (state: State | undefined, uid: number) =>
    state &&
    fixtureEntry({
      kind: state.kind,
      mode: state.executable ? 0o755 : 0o644,
      uid,
      size: state.content.length,
      content: state.kind === 'file' ? `id of ${state.content}` : '',
      target: state.kind === 'link' ? state.content : '',
    })
  const bytesOf = (state: State | undefined) => (state?.kind === 'file' ? rawToBytes(state.content) : undefined)
  return {
    path,
    ...(from === undefined ? {} : { from }),
    before: entryOf(one.before, 0),
    after: entryOf(one.after, one.owner),
    beforeContent: bytesOf(one.before),
    afterContent: bytesOf(one.after),
  }
}

function toRaw(bytes: number[]): Raw {
  return Buffer.from(bytes).toString('latin1')
}
