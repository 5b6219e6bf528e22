import { expect, it, test } from 'vitest'
import { makeOperation, makeRun, makeSnapshot, noon } from '../../model/fixture-snapshot.ts'
import { UNREAD_ROOT } from '../../model/snapshot.ts'
import { added, deleted, makeEntry, makeNodes, makeRestore } from '../fixture-result.ts'
import { createStyle } from '../style.ts'
import { changeLine, changeList, changesText } from './changes.ts'
import { snapshotDetails } from './details.ts'
import { goneText } from './gone.ts'
import { operationTable, runTable } from './operations.ts'
import { restoreExitCode, restoreText } from './restore.ts'
import { countsText, deltaText, logText, skippedText, snapshotLine, snapshotTable } from './snapshot.ts'
import { undoText } from './undo.ts'

const plain = createStyle(false)
const hour = 3_600_000
const words = { done: 'Rolled back to', would: 'Would roll back to', undo: 'To undo: savepoint undo' }

it('lists snapshots as a table with a footer', () => {
  const nodes = makeNodes('cccc3333 bbbb2222', 'bbbb2222 aaaa1111', 'aaaa1111')
  Object.assign(nodes[0]!.snapshot, { type: 'final', command: 'npm test', sizeDelta: 12_000, unsettled: true })
  Object.assign(nodes[1]!.snapshot, { label: 'before the\nrefactoring', skippedCount: 2 })
  nodes[1]!.tags = ['good', 'v1']
  expect(snapshotTable(nodes, noon + 2 * hour, plain)).toBe(
    [
      'ID             TYPE      SIZE  CREATED      LABEL',
      'snap_cccc3333  final   +12 KB  2 hours ago  $ npm test (HEAD) unsettled',
      'snap_bbbb2222  manual     0 B  2 hours ago  before the\\nrefactoring (tag: good, tag: v1) PARTIAL',
      'snap_aaaa1111  manual     0 B  2 hours ago',
      '3 snapshots (backend: cas)',
      '',
    ].join('\n'),
  )
})

it('says which command it was of one whose label is ours', () => {
  const nodes = makeNodes('bbbb2222 aaaa1111', 'aaaa1111')
  Object.assign(nodes[0]!.snapshot, { type: 'guard', label: 'irreversible', command: 'git push --force' })
  expect(snapshotTable(nodes, noon, plain)).toContain('irreversible $ git push --force (HEAD)\n')
  expect(logText(nodes, noon, plain)).toContain(' irreversible $ git push --force\n')
})

it('draws the log with marks, counts and titles', () => {
  const nodes = makeNodes('cccc3333 aaaa1111', 'bbbb2222 aaaa1111', 'aaaa1111')
  Object.assign(nodes[0]!.snapshot, { counts: { added: 1200, modified: 1, deleted: 2 }, label: 'third' })
  Object.assign(nodes[1]!.snapshot, { type: 'safety', command: 'rollback to snap_x' })
  nodes[2]!.tags = ['good']
  const text = logText(nodes, noon + hour, plain)
  expect(text).toBe(
    [
      '* snap_cccc3333 (HEAD) manual 1 hour ago +1,200 ~1 -2 third',
      '| * snap_bbbb2222 safety 1 hour ago = before: rollback to snap_x',
      '|/',
      '* snap_aaaa1111 (tag: good) manual 1 hour ago =',
      '',
    ].join('\n'),
  )
  expect(logText(nodes, noon, plain, 1).split('\n')).toHaveLength(2)
})

it('renders 1,000 snapshots quickly', () => {
  const nodes = makeNodes(...Array.from({ length: 1000 }, (_, i) => `s${i}${i < 999 ? ` s${i + 1}` : ''}`))
  const start = performance.now()
  expect(logText(nodes, noon, createStyle(true)).split('\n')).toHaveLength(1001)
  expect(performance.now() - start).toBeLessThan(100)
})

it('says what a snapshot stored, and what it left out', () => {
  const first = makeSnapshot('aaaa2222', { files: 1234, bytes: 5_000_000, sizeDelta: 2_000_000 })
  expect(snapshotLine(first, plain)).toBe('snap_aaaa2222  +2 MB  1,234 files, 5 MB')
  const next = makeSnapshot('aaaa2222', {
    parent: 'x',
    label: 'l',
    sizeDelta: 12_000,
    counts: { added: 3, modified: 1, deleted: 0 },
  })
  expect(snapshotLine(next, plain)).toBe('snap_aaaa2222 (l)  +12 KB  3 added, 1 modified')
  const skipped = Array.from({ length: 12 }, (_, i) => ({ path: `p${i}`, reason: 'unreadable' as const }))
  expect(skippedText(skipped, 12, plain)).toMatch(
    /^PARTIAL: 12 paths not captured\n {2}p0 \(unreadable\)\n[\s\S]* {2}… and 2 more\n$/,
  )
  expect(skippedText([], 0, plain)).toBe('')
})

test.each([
  [{ added: 0, modified: 0, deleted: 0 }, 'no changes'],
  [{ added: 0, modified: 1000, deleted: 1 }, '1,000 modified, 1 deleted'],
])('%j reads %s', (counts, text) => expect(countsText(counts)).toBe(text))

it('of a snapshot that is not read yet, nothing is said that nobody knows', () => {
  const unread = makeSnapshot('b', { root: UNREAD_ROOT, parent: 'a', files: 0, bytes: 0 })
  expect(deltaText(unread)).toBe('not read yet')
  const text = snapshotDetails(unread, undefined, undefined, 0, plain)
  expect(text).toMatch(/content +not read yet\n[\s\S]*changes +not read yet\n/)
  expect(text).not.toMatch(/root|0 files|no changes/)
})

it('reports a rollback with the next command', () => {
  const result = makeRestore({
    changes: [{ action: 'create', path: 'a', files: 3 }],
    files: { created: 3, deleted: 1, replaced: 2, metadata: 1 },
    keptDirs: ['node_modules'],
    hidden: { count: 22, paths: Array.from({ length: 22 }, (_, i) => `new${i}`) },
    uncaptured: [{ path: 'usb', reason: 'mount' }],
    operation: makeOperation(),
  })
  expect(restoreText(result, words, plain)).toBe(
    [
      'Rolled back to snap_aaaa2222 (works): 3 created, 1 deleted, 2 replaced, 1 with attributes put back',
      'Kept, because something else lives in them: node_modules',
      `Stay, because ignore rules hid them: ${Array.from({ length: 20 }, (_, i) => `new${i}`).join(', ')} and 2 more`,
      'Stay, because they were not captured: usb (mount or subvolume)',
      'To undo: savepoint undo',
      '',
    ].join('\n'),
  )
  expect(restoreExitCode(result)).toBe(0)
})

it('lists the plan of a dry run, and says that nothing happened', () => {
  const result = makeRestore({
    dryRun: true,
    changes: [
      { action: 'create', path: '.git', files: 33 },
      { action: 'delete', path: 'x\n', files: 1 },
      { action: 'replace', path: 'src/a', files: 1 },
    ],
    files: { created: 33, deleted: 1, replaced: 1, metadata: 0 },
  })
  expect(restoreText(result, words, plain)).toBe(
    [
      'Would roll back to snap_aaaa2222 (works): 33 created, 1 deleted, 1 replaced',
      '  + .git (33 files)',
      '  - x\\n',
      '  ~ src/a',
      'Nothing was changed (dry run)',
      '',
    ].join('\n'),
  )
})

it('names what was left alone with its reason, and ends with 3', () => {
  const result = makeRestore({
    leftAlone: [
      { path: 'a', why: 'edited' },
      { path: 'b', why: 'holds-uncaptured' },
    ],
  })
  const text = restoreText(result, words, plain)
  expect(text).toContain('Left alone (2):\n  a: edited by somebody else since\n  b: holds files that no snapshot has\n')
  expect(restoreExitCode(result)).toBe(3)
})

it('shortens a path of thousands of characters where it is named, and not in a command, which takes it', () => {
  const path = `${'d'.repeat(200)}/`.repeat(30)
  const result = makeRestore({
    leftAlone: [{ path: `${path}left`, why: 'refused' }],
    changes: [{ action: 'replace', path: `${path}mixed`, files: 1 }],
    mixed: [`${path}mixed`],
    safety: makeSnapshot('bbbb2222'),
  })
  const lines = restoreText(result, words, plain).split('\n')
  const ends = (name: string) => `${'d'.repeat(100)}…${path.slice(name.length - 100)}${name}`
  expect(lines).toContain(`  ${ends('left')}: the system refused to change it`)
  expect(lines).toContain(`May also hold somebody else's edit, made while the run went on: ${ends('mixed')}`)
  expect(lines).toContain(`To have that back: savepoint revert ${path}mixed --from snap_bbbb2222`)
})

it('says plainly that there was nothing to do', () => {
  expect(restoreText(makeRestore(), words, plain)).toBe(
    'Nothing to change: everything is as in snap_aaaa2222 (works)\n',
  )
})

it('undo points to redo and back', () => {
  const restore = makeRestore({
    files: { created: 2, deleted: 0, replaced: 0, metadata: 0 },
    emptyDirs: 2,
    changes: [{ action: 'create', path: 'a', files: 2 }],
  })
  const operation = makeOperation({ summary: 'run_x: make', state: 'undone' })
  expect(undoText({ operation, dryRun: false, restore, effect: '' }, 'undo', plain)).toBe(
    'Undone: run_x: make\nFiles: 2 created (2 empty directories included)\nTo redo: savepoint redo\n',
  )
  const redone = makeOperation({ summary: 'run_x: make' })
  expect(
    undoText({ operation: redone, dryRun: false, restore: undefined, effect: '3 snapshots back' }, 'redo', plain),
  ).toBe('Redone: run_x: make (3 snapshots back)\nTo undo: savepoint undo\n')
})

it('folds the inside of .git into one line and cuts long lists', () => {
  const changes = [deleted('.git/HEAD'), deleted('.git/config'), ...['a', 'b', 'c'].map(added)]
  expect(changeList(changes, plain, 2, 'savepoint changes')).toBe(
    '  A a\n  A b\n  D .git/ (2 deleted)\n  … and 1 more: savepoint changes\n',
  )
  expect(changeList([added('.git/x')], plain, 2, '')).toBe('  A .git/x\n')
  const nested = ['sub/.git/HEAD', 'sub/.git/config', 'x.git/f', '.git'].map(added)
  expect(changeList(nested, plain, 2, '')).toBe('  A x.git/f\n  A sub/.git/ (2 added)\n  A .git/ (1 added)\n')
  const modules = ['a', 'b', 'c', 'd'].map(name => added(`${name}/.git/HEAD`))
  expect(changeList(modules, plain, 2, '')).toBe('  A .git/ of 4 repositories (4 added)\n')
  const coloured = createStyle(true)
  expect(changeList(changes, coloured, 2, '')).toContain(`  ${coloured.red('D')} .git/ (2 deleted)\n`)
})

it('folds directories that came or went as a whole, when there are more changes than lines', () => {
  const gone = (path: string) => ({ ...deleted(`old/${path}`), within: 'old' })
  const empty = {
    kind: 'deleted' as const,
    path: 'old/empty',
    before: makeEntry('empty', { kind: 'dir' }),
    within: 'old',
  }
  const changes = [added('a'), gone('1'), gone('2'), empty, { ...added('new/x'), within: 'new' }, added('z')]
  expect(changeList(changes, plain, 3, 'savepoint changes')).toBe(
    '  A a\n  D old/ (2 files, 1 empty directory)\n  A new/x\n  … and 1 more: savepoint changes\n',
  )
  expect(changeList(changes, plain, 1, 'savepoint changes')).toBe('  A a\n  … and 5 more: savepoint changes\n')
  expect(changeList(changes, plain, 10, '')).toContain('  D old/1\n  D old/2\n  D old/empty/\n')
  expect(changesText({ added: 3, modified: 0, deleted: 3 }, changes)).toBe(
    '3 added, 3 deleted (1 empty directory included)',
  )
})

it('writes one change per line, relative to where the user stands', () => {
  const style = createStyle(false, 'src')
  expect(changeLine({ ...added('src/b'), kind: 'renamed', from: 'a' }, style)).toBe('R ../a -> b')
  expect(changeLine(added('src/b'), style, 'sizes')).toBe('A b (3 B)')
})

it('lists operations and runs', () => {
  const operations = [
    makeOperation({ state: 'undone' }),
    makeOperation({ kind: 'retention', state: 'past', summary: 'x', rule: 'auto_max 10' }),
  ]
  expect(operationTable(operations, noon + hour, plain)).toContain('can be redone  rollback to snap_aaaa2222\n')
  expect(operationTable(operations, noon + hour, plain)).toContain('x (rule: auto_max 10)')
  const runs = [
    makeRun(),
    makeRun({ exitCode: undefined, signal: 'SIGKILL' }),
    makeRun({ exitCode: undefined, endedAt: undefined }),
  ].map(run => ({ ...run, isInterrupted: false }))
  const text = runTable(runs, noon + hour, plain)
  expect(text).toContain("run_aaaa2222  0               1 hour ago  12.0 s  sh -c 'echo hi'")
  expect(text).toMatch(/SIGKILL[\s\S]*running/)
  const states = [
    { operation: 'op_a', kind: 'undo', partly: false },
    { operation: 'op_a', kind: 'rollback', partly: false },
    { operation: 'op_a', kind: 'rollback', partly: true },
  ] as const
  const taken = states.map(takenBack => runTable([{ ...runs[0]!, takenBack }], noon + hour, plain).split('\n')[1])
  expect(taken).toEqual([
    expect.stringContaining('  0     undone  1 hour ago'),
    expect.stringContaining('  0     taken back  1 hour ago'),
    expect.stringContaining('  0     partly taken back  1 hour ago'),
  ])
})

test('of a mount that is gone it is said that it may be whole elsewhere, and nothing of that otherwise', () => {
  const gone = (...reasons: ('mount' | 'excluded')[]) =>
    goneText(
      {
        count: reasons.length,
        paths: reasons.map((reason, i) => ({ path: `p${i}`, reason, snapshot: undefined, kept: undefined })),
      },
      plain,
    )
  expect(gone('excluded')).toBe('NOT protected and gone: p0 (ignored; it cannot be brought back)')
  expect(gone('excluded', 'mount').split('\n')).toEqual([
    'NOT protected and gone: p0, p1 (ignored, mount or subvolume; they cannot be brought back)',
    'If p1 was only unmounted, its own filesystem still has what is in it, unless that was in memory',
  ])
})
