/** The verbs that organise and maintain, help, and what holds for all of them. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { savepoint } from './support/built-cli.ts'
import { dialogue, smallWorkspace } from './support/dialogue.ts'
import { keys } from './support/json-keys.ts'
import type { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = smallWorkspace()
})
afterEach(() => space.remove())

const { say, json, idOf, refused } = dialogue(() => space)

describe('organise', () => {
  beforeEach(() => {
    say(['snapshot', '-m', 'first'])
    for (const i of [1, 2, 3]) {
      space.write('a.txt', `version ${i}\n`)
      savepoint(space, ['run', '-q', '--', 'sh', '-c', `echo ${i} > n`])
    }
  })

  it('tag: name, list, move, delete, each undone by undo', () => {
    expect(say(['tag'])).toBe('No tags yet. Name HEAD: savepoint tag NAME\n')
    expect(say(['tag', 'good'])).toBe('Tagged snap_ID as good\nTo undo: savepoint undo\n')
    const steps = json('operations').length
    expect(say(['tag', 'good'])).toBe('snap_ID is tagged good already\n')
    expect(json('operations')).toHaveLength(steps)
    expect(say(['tag', 'base', 'first'])).toBe('Tagged snap_ID as base\nTo undo: savepoint undo\n')
    expect(say(['tag'])).toBe(
      "TAG  SNAPSHOT  CREATED  LABEL\nbase  snap_ID  AGE  first\ngood  snap_ID  AGE  $ sh -c 'echo 3 > n'\n",
    )
    expect(json('tag').map(keys)).toEqual([
      ['name', 'snapshot'],
      ['name', 'snapshot'],
    ])
    expect(say(['tag', '-d', 'good'])).toBe('Deleted tag good\nTo undo: savepoint undo\n')
    expect(say(['undo'])).toMatch(/^Undone: .*good.*\nTo redo: savepoint redo\n$/)
    expect(json('tag').map((tag: { name: string }) => tag.name)).toEqual(['base', 'good'])
    refused(['tag', '-d', 'nothing'], 12, /Cannot .*nothing/)
    refused(['tag', 'a b'], 2, /^savepoint: Cannot use "a b" as a tag: .*\n {2}hint: /)
  })

  it('delete keeps for 7 days, undo brings it back; compact joins', () => {
    const all = json('snapshots').length
    expect(say(['delete', 'first'])).toBe('Done: delete snap_ID; kept for 7 days\nTo undo: savepoint undo\n')
    refused(['show', 'first'], 12, /Cannot find snapshot "first"/)
    expect(json('snapshots')).toHaveLength(all - 1)
    say(['undo'])
    expect(json('snapshots')).toHaveLength(all)
    const [, second, third] = json('snapshots') as { id: string }[]
    expect(say(['compact', second!.id, third!.id, '-m', 'joined'])).toMatch(
      /^Joined 2 snapshots into snap_ID \(joined\) .*\nTo undo: savepoint undo\n$/,
    )
    say(['undo'])
    expect(json('snapshots')).toHaveLength(all)
    say(['tag', 'kept', third!.id])
    refused(['compact', second!.id, third!.id], 1, /^savepoint: Cannot compact snap_\w+: it is tagged kept\n/)
    say(['tag', '-d', 'kept'])
  })

  it('prune --dry-run names the rule, prune deletes, undo brings back; gc and verify', () => {
    const all = json('snapshots').length
    const plan = say(['prune', '--keep', '1', '--dry-run'])
    expect(plan).toMatch(/^snap_\w+ +manual .* keep +labelled/m)
    expect(plan).toMatch(/^ID {2}TYPE {2}CREATED {2}DECISION {2}RULE {2}LABEL\n/)
    expect(plan).toMatch(
      /\nWould delete \d+ snapshots?, \d+ snapshots? kept\nOf these, \d+ are pinned: .*\nTo let .*\nKept by rule: 1 among the newest 1\nNothing was changed \(dry run\)\n$/,
    )
    expect(json('snapshots')).toHaveLength(all)
    expect(say(['prune', '--keep', '1'])).toMatch(
      /\nDeleted \d+ snapshots?, \d+ snapshots? kept\nOf these, .*\nTo let .*\nTo undo: savepoint undo\n$/,
    )
    expect(json('snapshots').length).toBeLessThan(all)
    say(['undo'])
    expect(json('snapshots')).toHaveLength(all)
    const decided = json('prune', '--dry-run')
    expect(keys(decided)).toEqual(['dry_run', 'decisions', 'left_to_store', 'operation'])
    expect(keys(decided.decisions[0])).toEqual(['snapshot', 'keep', 'pinned', 'rule'])
    expect(say(['gc'])).toMatch(/^(Nothing to free|Freed)/)
    expect(keys(json('gc'))).toEqual([
      'forgotten_snapshots',
      'forgotten_traces',
      'removed_objects',
      'removed_kept',
      'still_kept',
      'freed_bytes',
      'store_bytes',
    ])
    expect(say(['verify'])).toMatch(/^All good: \d+ objects, SIZE, \d+ snapshots\n$/)
    expect(keys(json('verify'))).toEqual([
      'ok',
      'objects',
      'bytes',
      'snapshots',
      'snapshots_here',
      'snapshots_deleted',
      'snapshots_unread',
      'problems',
      'strays',
      'repaired',
    ])
  })

  it('prune says what is pinned, by kind, and which key lets pre-run snapshots go', () => {
    const key = 'To let pre-run ones and the first one go, too: snapshots.retention.delete_initial: true\n'
    const kept = `6 snapshots kept\nOf these, 5 are pinned: 3 pre-run, 1 HEAD, 1 labelled\n${key}`
    expect(say(['prune', '--keep', '1'])).toContain(`\nDeleted 1 snapshot, ${kept}To undo`)
    expect(say(['prune', '--keep', '1'])).toBe(`Nothing to delete: ${kept}`)
    writeFileSync(join(space.home, 'config.yaml'), 'snapshots:\n  retention:\n    delete_initial: true\n')
    expect(say(['prune', '--keep', '1'])).toContain('3 snapshots kept\nOf these, 2 are pinned: 1 HEAD, 1 labelled\nTo')
    const help = say(['prune', '--help']).replace(/\s+/g, ' ')
    expect(help).toContain('all but the newest N of those that are not pinned')
    expect(help).toContain('unless snapshots.retention.delete_initial is true, the pre-run snapshot of every run')
  })

  it('export and import: the archive is a tar; the imported snapshot is the same tree', () => {
    for (const name of ['x.tar.zst', 'x.tar.gz']) {
      const file = join(space.base, name)
      expect(say(['export', 'HEAD', file])).toMatch(/^Wrote snap_ID into BASE\/x\.tar\.\w+: 3 files, SIZE\n$/)
      expect(space.sh(`tar -tf '${file}'`)).toContain('src/b.txt\n')
      expect(say(['import', file, '-m', name])).toMatch(
        /^Imported BASE\/x\S+ as snap_ID \(x\S+\): 3 files\nTo see it: savepoint rollback snap_ID --dry-run\nTo undo: savepoint undo\n$/,
      )
      expect(say(['diff', name, 'HEAD', '--name-only', '-q'])).toBe('')
    }
  })

  it('import of an archive that looks like a bomb: the hint names --force, and that works', () => {
    const archive = join(space.base, 'zeros.tar.zst')
    space.sh(
      `mkdir ../z; for i in 1 2 3; do head -c 200M /dev/zero > ../z/$i; done; tar -C ../z --zstd -cf '${archive}' .; rm -r ../z`,
    )
    refused(['import', archive], 1, /unpacks to more than 100 times its size\n {2}hint: .*--force\n$/)
    expect(say(['import', archive, '--force'])).toMatch(/: 3 files\n/)
  })

  it('purge: asks first, so elsewhere it needs --yes; the content is gone from the store', () => {
    space.write('.env', 'TOKEN=abcdefghijklmnop\n')
    say(['snapshot'])
    refused(
      ['purge', '.env'],
      2,
      /^savepoint: Cannot purge \.env: it cannot be undone, and nobody can be asked here\n {2}hint: If you are sure: savepoint purge \.env --yes\n$/,
    )
    const { stdout, stderr } = savepoint(space, ['purge', '.env', '--yes'])
    expect(stdout).toMatch(/^Purged \.env: 1 version in 1 snapshot, .* freed; 1 event removed\n$/)
    expect(stderr).toBe(
      'savepoint: .env is still on disk: unless it goes, or .savepointignore names it, the next snapshot has it again\n',
    )
    expect(space.read('.env')).toBe('TOKEN=abcdefghijklmnop\n')
    refused(['show', 'HEAD', '.env'], 12, /Cannot read \.env/)
  })
})

describe('the rest', () => {
  it('doctor: checks and configuration files', () => {
    space.write('savepoint.yaml', 'snapshots:\n  retention:\n    max_count: 3\n')
    const text = say(['doctor'])
    expect(text).toMatch(/^ok +node {2}v\d+/)
    expect(text).toMatch(
      /Configuration, the later wins:\n {2}BASE\/store home\/config\.yaml \(absent\)\n {2}BASE\/work\/savepoint\.yaml\n/,
    )
    const result = json('doctor')
    expect(keys(result)).toEqual(['checks', 'config'])
    expect(keys(result.checks[0])).toEqual(['name', 'state', 'detail', 'fix'])
  })

  it('doctor: a limit is shown in the unit that it was written in', () => {
    const disk = () => json('doctor').checks.find(({ name }: { name: string }) => name === 'disk').detail
    expect(disk()).toMatch(/free, 1 GiB are kept free$/)
    space.write('savepoint.yaml', 'snapshots:\n  min_free_bytes: 1.5 GiB\n')
    expect(disk()).toMatch(/free, 1\.5 GiB are kept free$/)
  })

  it('help: every verb is listed, and each has its own with examples', () => {
    const help = say(['--help'])
    expect(say([])).toBe(help)
    const names = [...help.matchAll(/^ {2}([a-z]+)(?:, [a-z, ]+)? {2}/gm)].map(match => match[1]!)
    expect(names).toEqual(
      expect.arrayContaining(['run', 'snapshot', 'undo', 'rollback', 'diff', 'log', 'demo', 'doctor']),
    )
    for (const name of names.filter(name => !['help', 'savepoint'].includes(name))) {
      expect(say([name, '--help'])).toMatch(new RegExp(`^Usage: savepoint ${name}[^]*\nExamples:\n {2}savepoint `))
    }
    expect(say(['help', 'undo'])).toBe(say(['undo', '--help']))
  })

  it('13: verbs and targets of later versions are known by name', () => {
    refused(['ui'], 13, /^savepoint: Cannot open the web page \(ui\): not in this version yet\n {2}hint: /)
    refused(['snapshot', '-t', 'env:x'], 13, /this version knows directories only/)
  })

  it('-t works from anywhere, --home and $SAVEPOINT_HOME choose the store', () => {
    mkdirSync(join(space.base, 'elsewhere'))
    const there = { cwd: join(space.base, 'elsewhere') }
    expect(savepoint(space, ['snapshot', '-t', '../work'], there).status).toBe(0)
    expect(savepoint(space, ['-t', '../work', 'head', '-q'], there).stdout).toBe(`${idOf('head')}\n`)
    expect(savepoint(space, ['status', '--home', join(space.base, 'other home')]).status).toBe(10)
    expect(existsSync(join(space.userHome, '.savepoint'))).toBe(false)
    const { SAVEPOINT_HOME: _, ...env } = space.env
    expect(savepoint(space, ['snapshot'], { env }).status).toBe(0)
    expect(existsSync(join(space.userHome, '.savepoint/store'))).toBe(true)
  })
})
