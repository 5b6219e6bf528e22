/** `bundle show`, `diff` and `verify`: what people and programs read of a bundle. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Bundle, restoreBundle, verifyBundle } from '../src/record/index.ts'
import { savepoint, savepointJson } from './support/built-cli.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
const at = (name: string) => join(space.base, name)
const bundle = (...args: string[]) => savepoint(space, ['bundle', ...args])

beforeAll(() => {
  space = new Workspace()
  space.write('edited', 'one\ntwo\nthree\n')
  space.write('gone', 'gone\n')
  space.write('dir/old name', 'content that is moved\n')
  space.write('read', 'read\n')
  space.sh('cp -a . ../before')
  const script =
    'cat read; sed s/two/TWO/ edited > new; cat new > edited; rm new gone; mv "dir/old name" dir/new; chmod 600 read; test -e nothing'
  const { status, stderr } = savepoint(space, ['record', '--snapshot-dir', at('bundle'), '--', 'sh', '-c', script])
  // As `show` counts.
  expect([status, stderr]).toEqual([1, expect.stringContaining('1 added, 1 modified, 2 deleted, 1 otherwise changed')])
})
afterAll(() => space.remove())

describe('show', () => {
  it('tells the command, what it did, and every path', () => {
    const { stdout, status } = bundle('show', at('bundle'))
    expect(status).toBe(0)
    expect(stdout).toMatch(/^sh -c 'cat read; [\s\S]*\n {2}ended {5}exit 1, after /)
    expect(stdout).toContain('1 added, 1 modified, 2 deleted, 1 otherwise changed')
    expect(stdout).toContain(`M ${space.at('edited')} (read,write; 14 B)`)
    expect(stdout).toContain(`D ${space.at('gone')} (`)
    expect(stdout).toContain(`m ${space.at('read')} (read,write`)
    expect(stdout).toContain(`  ${space.at('nothing')} (existence; not there)`)
  })

  it('with --changed only what changed, --tree as a tree, --quiet the names alone', () => {
    const names = bundle('show', '--changed', '-q', at('bundle')).stdout
    const changed = ['dir/new', 'dir/old name', 'edited', 'gone', 'read']
    expect(names).toBe(changed.map(name => `${space.at(name)}\n`).join(''))
    const tree = bundle('show', '--changed', '--tree', at('bundle')).stdout.split('\n\n')[1]!
    expect(tree.split('\n').map(line => line.replace(/ \(.*/, ''))).toEqual([
      `  ${space.dir}/`,
      '    dir/',
      'A     new',
      'D     old name',
      'M   edited',
      'D   gone',
      'm   read',
      '',
    ])
  })

  it('for programs is the manifest, and what kind of change each is', () => {
    const shown = savepointJson(space, ['bundle', 'show', at('bundle')])
    expect(shown).toMatchObject({ format_version: 1, exit_status: 1, start_cwd: space.dir, complete: true })
    const kinds = new Map(shown.files.map((file: { path: string; change: string | null }) => [file.path, file.change]))
    expect(['edited', 'gone', 'dir/new', 'read', 'nothing'].map(name => kinds.get(space.at(name)))).toEqual([
      'modified',
      'deleted',
      'added',
      'metadata',
      null,
    ])
    const { files } = JSON.parse(readFileSync(join(at('bundle'), 'manifest.json'), 'utf8'))
    expect(shown.files.map(({ change: _, ...file }: { change: unknown }) => file)).toEqual(files)
  })

  it('refuses what is none, and options that are of another word', () => {
    expect(bundle('show', space.dir)).toMatchObject({
      status: 14,
      stderr: expect.stringContaining('there is no such file'),
    })
    expect(bundle('show', '--stat', at('bundle')).status).toBe(2)
    expect(bundle('shwo', at('bundle')).status).toBe(2)
    expect(bundle('show').status).toBe(2)
  })
})

describe('diff', () => {
  it('is a patch that does the same where the command started', () => {
    const { stdout, stderr } = bundle('diff', at('bundle'))
    expect(stderr).not.toContain('lie outside')
    expect(stdout).toContain('rename from dir/old name\nrename to dir/new\n')
    expect(stdout).toContain('-two\n+TWO\n')
    expect(stdout).not.toContain('new file mode')
    writeFileSync(at('patch'), stdout)
    space.sh('git apply ../patch', at('before'))
    space.sh('diff -r ../before .')
  })

  it('counts, and lists names', () => {
    expect(bundle('diff', '--name-only', at('bundle')).stdout.split('\n').sort()).toEqual([
      '',
      'dir/new',
      'edited',
      'gone',
      'read',
    ])
    expect(bundle('diff', '--stat', at('bundle')).stdout).toContain('edited')
    const { changes } = savepointJson(space, ['bundle', 'diff', at('bundle')])
    expect(changes.map((change: { kind: string }) => change.kind).sort()).toEqual([
      'deleted',
      'metadata',
      'modified',
      'renamed',
    ])
  })
})

describe('verify', () => {
  it.each<[string, object]>([
    ['an owner', { uid: 2 ** 32 }],
    ['a time that is none', { mtime: '2026-99-01T00:00:00.000000000Z' }],
    ['a time that is no number', { mtime: '2026-01-01T00:00:00.\ufffd88509079Z' }],
    ['a time too late to be kept', { mtime: '2500-01-01T00:00:00.000000000Z' }],
    ['a link to nothing', { type: 'symlink', target: '', blob: undefined }],
    ['a link to two things', { type: 'symlink', target: 'a', target_bytes: 'Yg==', blob: undefined }],
    ['a link that is too long', { type: 'symlink', target: 'a'.repeat(5000), blob: undefined }],
    ['a name that is too long', { path: `/${'a'.repeat(256)}` }],
    ['a path that is too long', { path: `/${'a/'.repeat(5000)}a` }],
  ])(
    'finds what no restore could write, and the restore refuses it: %s',
    async (_, { path, ...state }: { path?: string }) => {
      space.sh('rm -rf ../damaged; cp -r ../bundle ../damaged')
      const file = join(at('damaged'), 'manifest.json')
      const manifest = JSON.parse(readFileSync(file, 'utf8'))
      const gone = manifest.files.find((each: { path: string }) => each.path === space.at('gone'))
      Object.assign(gone.before, state)
      if (path !== undefined) gone.path = path
      writeFileSync(file, JSON.stringify(manifest))
      const verify = async () => verifyBundle(new Bundle(at('damaged'))).problems.length
      const how = {
        side: 'before',
        to: at('to'),
        anywhere: false,
        force: false,
        withGit: false,
        dryRun: false,
      } as const
      const restore = async () =>
        restoreBundle(new Bundle(at('damaged')), { ...how, home: space.home, confirm: async () => true })
      expect(await verify().catch(({ code }) => code)).not.toBe(0)
      await expect(restore()).rejects.toMatchObject({ code: 'bundle.damaged' })
    },
  )

  it('finds what is missing, what is too much, and what makes no sense', () => {
    expect(bundle('verify', at('bundle'))).toMatchObject({ status: 0, stdout: expect.stringContaining('All good') })
    const damaged = (change: (manifest: { files: { path: string; before: object }[] }) => void) => {
      space.sh('rm -rf ../damaged; cp -r ../bundle ../damaged')
      const file = join(at('damaged'), 'manifest.json')
      const manifest = JSON.parse(readFileSync(file, 'utf8'))
      change(manifest)
      writeFileSync(file, JSON.stringify(manifest))
      const { status, stdout, stderr } = bundle('verify', at('damaged'))
      return [status, stdout + stderr]
    }
    const gone = (manifest: { files: { path: string; before: object }[] }) =>
      manifest.files.find(({ path }) => path === space.at('gone'))!
    expect(damaged(manifest => Object.assign(gone(manifest).before, { blob: 'before:/nowhere' }))).toEqual([
      14,
      expect.stringMatching(/has no before:\/nowhere[\s\S]*nothing refers to/),
    ])
    expect(damaged(manifest => Object.assign(gone(manifest).before, { blob_parts: 1e9 }))).toEqual([
      14,
      expect.stringMatching(/has no before:.*#part2/),
    ])
    expect(damaged(manifest => Object.assign(gone(manifest).before, { size: 3 }))).toEqual([
      14,
      expect.stringContaining('has 5 bytes, and the manifest says 3'),
    ])
    expect(damaged(manifest => Object.assign(gone(manifest).before, { tombstone: true }))).toEqual([
      14,
      expect.stringContaining('is a tombstone'),
    ])
    expect(damaged(manifest => Object.assign(gone(manifest).before, { mode: 'rw' }))).toEqual([
      14,
      expect.stringContaining('manifest.json is wrong at files.'),
    ])
    expect(damaged(manifest => Object.assign(manifest, { format_version: 2 }))).toEqual([
      14,
      expect.stringContaining('format version 2'),
    ])
    expect(damaged(manifest => manifest.files.push(gone(manifest)))).toEqual([14, expect.stringContaining('twice')])
    writeFileSync(join(at('damaged'), 'manifest.json'), '{')
    expect(bundle('verify', at('damaged'))).toMatchObject({ status: 14, stderr: expect.stringContaining('is no JSON') })
    space.sh('cp ../bundle/manifest.json ../damaged; rm ../damaged/blobs.parquet; mkfifo ../damaged/blobs.parquet')
    expect(bundle('verify', at('damaged'))).toMatchObject({ status: 14, stdout: expect.stringContaining('is no file') })
    rmSync(join(at('damaged'), 'blobs.parquet'))
    expect(bundle('verify', at('damaged'))).toMatchObject({
      status: 14,
      stdout: expect.stringContaining('blobs.parquet is missing'),
    })
  })
})
