/** Paths of a recording that were only looked at go into the manifest by a way of their own: it says the same as the other one. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { addon } from '../src/native/addon.ts'
import { finishRecording } from '../src/record/finish.ts'
import type { Manifest } from '../src/record/manifest.ts'
import { readRecordLog } from '../src/tracers/record-log.ts'
import { isRoot } from './support/machine.ts'
import { recordScript } from './support/recorded.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

/** A recording that was not made into a bundle: the command itself took away where that was to be. */
function recorded(script: string): string {
  space.sh('mkdir away', space.base)
  const take = `rm -r '${join(space.base, 'away')}'`
  const { result } = recordScript(space, `${script}\n${take}`, { name: 'away/bundle' })
  expect(result.stderr).toContain('Nothing of the recording is lost')
  return join(space.home, 'recordings', readdirSync(join(space.home, 'recordings'))[0]!)
}

async function manifestOf(directory: string, settles: boolean): Promise<string> {
  const output = join(space.base, `bundle-${settles}`)
  await finishRecording({ directory, output, env: space.env, settles })
  return readFileSync(join(output, 'manifest.json'), 'latin1')
}

/** By their names in the workspace. */
async function filesOf(directory: string): Promise<Map<string, Manifest['files'][number]>> {
  const text = await manifestOf(directory, true)
  expect(text).toBe(await manifestOf(directory, false))
  const { files } = JSON.parse(text) as Manifest
  const inside = files.filter(({ path }) => path.startsWith(`${space.dir}/`))
  return new Map(inside.map(file => [file.path.slice(space.dir.length + 1), file]))
}

/** Names in the workspace of what goes the other way. */
function unsettled(directory: string): string[] {
  const { paths } = readRecordLog(join(directory, 'log'), true)
  return [...paths.keys()]
    .filter(path => path.startsWith(`${space.dir}/`))
    .map(path => path.slice(space.dir.length + 1))
}

const LOOK = `find . -printf '' -size +1; find . -type l -exec readlink {} + >/dev/null`

const KINDS = `
mkdir -p d/e empty d-e
echo one > d/file; echo two > d/e/file; echo x > d-e/x; ln d/file d/other-name; chmod 4711 d/file; chown 3:4 d/e/file 2>/dev/null || :
touch -d '1955-11-05 06:15:00.000000001Z' d/old; touch -d '1969-12-31 23:59:59.999999999Z' d/eve; touch -d '2261-01-01Z' d/far; touch -d '2300-01-01Z' d/beyond d/beyond-read
ln -s d/file link; ln -s nowhere dangling; ln -s "$(printf 'a\\377b')" d/odd-link; mkfifo fifo; python3 -c 'import socket; socket.socket(1).bind("socket")'
touch "$(printf 'd/not-utf8-\\377')" 'd/quo"te' 'd/back\\slash' 'd/ümlaut' "$(printf 'd/new\\nline')" "$(printf 'd/del\\177')"
`

it('of every kind, and of names of every kind', async () => {
  space.sh(KINDS)
  const directory = recorded(`${LOOK}; cat d/beyond-read; test -e d/missing || test -e gone/below || :`)
  const files = await filesOf(directory)
  expect(files.get('d/old')!.before.mtime).toBe('1955-11-05T06:15:00.000000001Z')
  expect(files.get('d/eve')!.after.mtime).toBe('1969-12-31T23:59:59.999999999Z')
  // The nearest time that can be told, or what the filesystem has made of it: before and after.
  for (const name of ['d/beyond', 'd/beyond-read']) {
    expect(files.get(name)!.before.mtime! > '2038-01-01').toBe(true)
    expect(files.get(name)!.after.mtime).toBe(files.get(name)!.before.mtime)
  }
  expect(files.get('link')).toMatchObject({ operations: ['read', 'existence'], after: { target: 'd/file' } })
  expect(files.get('d')).toMatchObject({ operations: ['existence', 'directory'], after: { type: 'directory' } })
  for (const name of ['d/missing', 'gone/below'])
    expect(files.get(name)).toMatchObject({ operations: ['existence'], after: { exists: false } })
  expect(unsettled(directory).sort()).toEqual(
    [
      'd/back\\slash',
      'd/beyond-read',
      'd/del\x7f',
      'd/new\nline',
      'd/not-utf8-\xff',
      'd/odd-link',
      'd/quo"te',
      'd/\xc3\xbcmlaut',
    ].sort(),
  )
})

it('of what somebody else changed afterwards', async () => {
  const names = ['ctime', 'content', 'gone', 'kind', 'mode', 'replaced', 'stamp', 'tree/a', 'tree/b', 'way/a', 'link/a']
  for (const name of names) space.write(name)
  space.sh('ln -s content to')
  const directory = recorded(`${LOOK}; test -e later || :`)
  expect(unsettled(directory)).toEqual([])
  space.sh(`
    chmod 600 ctime; chmod 644 ctime
    echo more >> content; rm gone; rm kind; mkdir kind; chmod 600 mode; cp -p replaced new; mv new replaced; touch later
    touch -d '2001-02-03 04:05:06.000000007Z' stamp
    rm tree/a; rm -r way; echo file > way; mv link moved; ln -s moved link; ln -sfn mode to`)
  const changed = [
    'content',
    // It goes the long way, which finds that nothing has changed.
    'ctime',
    'gone',
    'kind',
    'later',
    'link',
    'link/a',
    'mode',
    'replaced',
    'stamp',
    'to',
    'tree',
    'tree/a',
  ]
  // The workspace itself, too, which lies above.
  expect(unsettled(directory).sort()).toEqual([...changed, 'way'].concat('way/a').sort())
  const files = await filesOf(directory)
  expect(files.get('ctime')!.after).toEqual(files.get('ctime')!.before)
  expect(files.get('content')!.after).toMatchObject({ size: 13 })
  for (const name of ['gone', 'way/a', 'link/a', 'tree/a'])
    expect(files.get(name)!.after).toEqual({ exists: false, tombstone: true })
  expect(files.get('kind')!.after.type).toBe('directory')
  expect(files.get('stamp')!.after.mtime).toBe('2001-02-03T04:05:06.000000007Z')
  expect(files.get('later')).toMatchObject({ before: { exists: false }, after: { exists: true } })
  expect(files.get('tree/b')!.after).toEqual(files.get('tree/b')!.before)
})

it('of so many that two threads look at them', async () => {
  space.sh('for d in 1 2 3 4; do mkdir -p $d; (cd $d; seq -f file-%05.0f 3000 | xargs touch); done')
  const directory = recorded('find . -size +1')
  expect(unsettled(directory)).toEqual([])
  space.sh('rm 1/file-00001 4/file-03000; echo x > 2/file-03000; echo x > 3/file-00001')
  const expected = ['1', '1/file-00001', '2/file-03000', '3/file-00001', '4', '4/file-03000']
  expect(unsettled(directory).sort()).toEqual(expected)
  expect((await filesOf(directory)).size).toBeGreaterThan(12_000)
})

it('among others: read, written, moved, known to git, and in a directory that is shut', async () => {
  space.sh(`${KINDS}
    git init -q repo; echo t > repo/tracked; git -C repo add -A; git -C repo commit -qm 1; echo u > repo/untracked
    mkdir -p moving/in shut; echo m > moving/in/m; echo s > shut/s; echo v > moved-other`)
  const directory = recorded(`${LOOK}; cat d/file >/dev/null; echo w > d/e/file; rm d/old
    test -e moved/in/m || test -e moved/in/n || :; mv moving moved; touch moved/in/n; chmod 0 shut`)
  const rest = unsettled(directory)
  expect(rest).toEqual(
    expect.arrayContaining(['repo/tracked', 'repo/untracked', 'moved/in/m', 'moved-other', 'd/file']),
  )
  expect(rest).not.toContain('d/far')
  const files = await filesOf(directory)
  expect(files.get('repo/tracked')!.git).toMatchObject({ in_repo: true, tracked: true })
  expect(files.get('moved/in/m')!.operations).toContain('write')
  expect(files.get('moved/in/n')).toMatchObject({ before: { exists: false }, after: { exists: true } })
  expect(files.get('shut/s')!.after).toMatchObject({ exists: true, size: 2 })
  expect(files.get('shut')!.after.mode).toBe(0)
})

it('of paths that are longer than the system takes, which the other way cannot look at', async () => {
  const DEEP = "import os\nfor i in range(50): os.mkdir('n' * 100); os.chdir('n' * 100)"
  execFileSync('python3', ['-c', DEEP], { cwd: space.dir })
  const directory = recorded(LOOK)
  const longest = async (settles: boolean) => {
    const { files, skipped } = JSON.parse(await manifestOf(directory, settles)) as Manifest
    const found = files.filter(({ path }) => path.length > 4096)
    return { found: found.length, skipped: skipped.length, isSame: found.every(({ after }) => after.exists) }
  }
  expect(await longest(false)).toEqual({ found: 1, skipped: 1, isSame: true })
  expect(await longest(true)).toEqual({ found: 1, skipped: 0, isSame: true })
})

it('of a log that ends in the middle, at any place', async () => {
  space.sh(KINDS)
  const directory = recorded(`${LOOK}; echo w > d/file`)
  const log = readFileSync(join(directory, 'log'))
  const numberOf = (bytes: Buffer) => {
    const { settled, rest } = addon.settleLooks(bytes)
    return settled.length / 8 + rest.length / 4
  }
  const whole = numberOf(log)
  const counts = Array.from(log.keys(), length => numberOf(log.subarray(0, length)))
  expect(counts).toEqual(counts.toSorted((a, b) => a - b))
  expect([counts[0], counts.at(-1)]).toEqual([0, whole - 1])
})

it.runIf(isRoot)('of what its user cannot look at any more', () => {
  space.sh('mkdir -p shut/in; touch shut/in/file')
  const directory = recorded(LOOK)
  space.sh('chmod 0 shut')
  const look = `process.stdout.write(String(require(${JSON.stringify(join(process.cwd(), 'build/savepoint.node'))})
    .settleLooks(require('node:fs').readFileSync(${JSON.stringify(join(directory, 'log'))})).settled.length / 8))`
  const count = (...before: string[]) =>
    Number(execFileSync('setpriv', [...before, process.execPath, '-e', look], { encoding: 'utf8' }))
  const everything = count('--nnp')
  // `shut` itself can still be seen, but not `in` and `file`.
  expect(count('--bounding-set=-all', '--inh-caps=-all')).toBe(everything - 2)
  spawnSync('chmod', ['700', space.at('shut')])
  rmSync(directory, { recursive: true })
})
