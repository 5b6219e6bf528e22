/** Archives beyond the contract: what they are, what happens when one is damaged, and how many are kept. */
import {
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { doctor } from '../src/index.ts'
import { archives, archivesOf, run } from './support/backend-scene.ts'
import { builtCommand, savepoint as cli } from './support/built-cli.ts'
import { finishVerbs, startVerbs } from './support/engine-process.ts'
import { canMount, gated } from './support/machine.ts'
import { flipIn, noise } from './support/tree-ops.ts'
import { runAsUser } from './support/without-privilege.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = archives.make()
})
afterEach(() => space.remove())

function configure(yaml: string): void {
  mkdirSync(space.home, { recursive: true })
  writeFileSync(join(space.home, 'config.yaml'), yaml)
}

async function snapshot(label: string, content = `${label}\n`) {
  space.write('a', content)
  return (await space.open()).snapshot({ label })
}

describe('an archive', () => {
  test('is a private file that tar reads, with what the snapshot has and without what rules exclude', async () => {
    space.git('init', '-q')
    space.write('.gitignore', 'modules\n.env\n')
    space.write('modules/large')
    space.write('.env', 'secret\n')
    space.write('dir/b')
    const { id } = await snapshot('one')
    const [file] = archives.kept(space)
    expect(file).toMatch(new RegExp(`timelines/[^/]+/archives/${id}\\.tar\\.zst$`))
    expect(statSync(file!).mode & 0o777).toBe(0o600)
    // Node's own decompressor, so that no program is needed.
    const { zstdDecompressSync } = await import('node:zlib')
    writeFileSync(join(space.base, 'plain.tar'), zstdDecompressSync(readFileSync(file!)))
    const names = space.sh(`tar -tf ${space.base}/plain.tar | grep -v '^./.git/'`).split('\n').filter(Boolean)
    expect(names.toSorted()).toEqual(['./', './.env', './.gitignore', './a', './dir/', './dir/b'])
    expect(space.sh(`tar -xOf ${space.base}/plain.tar ./a`)).toBe('one\n')
  })

  test('is made only where somebody says so, of what somebody asks for; gzip when that is asked for', async () => {
    expect(await snapshot('one')).toMatchObject({ backend: 'archive' })
    configure('snapshots: {archive_compression: gzip}\n')
    await snapshot('two')
    expect(archives.kept(space).filter(file => file.endsWith('.tar.gz'))).toHaveLength(1)
    const { stdout } = cli(space, ['run', '--', 'sh', '-c', 'echo x > b'])
    expect(stdout).toBe('')
    expect(archives.kept(space)).toHaveLength(2)
    expect(cli(space, ['snapshots']).stdout).toMatch(/\(backend: cas, archive\)\n$/)
    const { checks } = await doctor({ cwd: space.dir, home: space.home, env: space.env })
    expect(checks.find(({ name }) => name === 'backend')).toMatchObject({ state: 'ok', detail: /^archive: / })
    const usual = new Workspace()
    try {
      usual.write('a')
      expect((await (await usual.open()).snapshot({})).backend).not.toBe('archive')
    } finally {
      usual.remove()
    }
  })

  test('goes with the home when that is moved', async () => {
    await snapshot('one')
    const home = `${space.home} moved`
    renameSync(space.home, home)
    const savepoint = await space.open({ home })
    expect(savepoint.find('one').damage).toBeUndefined()
    expect(savepoint.nativeUsage('one')!.where.startsWith(home)).toBe(true)
    expect((await savepoint.verify()).problems).toEqual([])
  })

  test('is made by an ordinary user', async () => {
    space.write('a', '1\n')
    const { results } = await runAsUser(space, [['snapshot', { label: 'one' }], ['verify']])
    expect(results).toMatchObject([{ backend: 'archive' }, { problems: [] }])
  })

  test('while a run is at work, the store keeps what is asked for, and says so', async () => {
    const { stderr } = cli(space, ['run', '--', ...builtCommand, 'snapshot', '-m', 'inside'])
    expect(stderr).toMatch(/snap_\w+ is in the store: a run is at work/)
    const named = cli(space, ['run', '--', ...builtCommand, 'snapshot', '--backend', 'archive'])
    expect([named.status, named.stderr]).toEqual([
      11,
      expect.stringMatching(/Cannot have archive keep it: run_\w+ is at work/),
    ])
    const stored = cli(space, ['run', '--', ...builtCommand, 'snapshot', '--backend', 'cas'])
    expect(stored.status).toBe(0)
  })

  test.each(['export:before-sync', 'export:before-rename', 'native:captured'])(
    'killed at %s: no snapshot, and nothing stays of it',
    async failpoint => {
      space.write('a', '1\n')
      const child = startVerbs(space, [['snapshot', { label: 'lost' }]], { failpoint })
      expect((await finishVerbs(child)).signal).toBe('SIGKILL')
      expect(archivesOf(space)).toHaveLength(1)
      expect((await space.open()).snapshots()).toEqual([])
      await snapshot('one')
      expect(archivesOf(space)).toEqual(archives.kept(space))
      expect(archives.kept(space)).toHaveLength(1)
    },
  )

  test('for which there is no room: no snapshot, nothing left of it, and the store still works', async () => {
    space.write('a', '1\n')
    const child = startVerbs(space, [['snapshot', {}]], { failpoint: 'export:before-sync@ENOSPC' })
    expect((await finishVerbs(child)).error).toMatchObject({ code: 'disk.full', isOurs: true })
    expect(archivesOf(space)).toEqual([])
    const savepoint = await space.open({ backend: 'cas' })
    expect(savepoint.snapshots()).toEqual([])
    expect(await savepoint.snapshot({})).toMatchObject({ backend: 'cas' })
  })
})

gated(
  canMount,
  'root',
  'an archive that would take what snapshots.min_free_bytes keeps is not made, and no snapshot either',
  async () => {
    mkdirSync(space.home)
    run('mount', '-t', 'tmpfs', '-o', 'size=40m', 'none', space.home)
    try {
      configure('snapshots: {min_free_bytes: 25 MB}\n')
      space.write('noise', noise(10_000_000, 1))
      const savepoint = await space.open()
      await expect(savepoint.snapshot()).rejects.toMatchObject({
        code: 'disk.full',
        message: expect.stringMatching(/fewer than 25 MB would stay free .*min_free_bytes/),
      })
      expect([archivesOf(space), savepoint.snapshots()]).toEqual([[], []])
      // What the store has of it is enough for one without.
      expect(await (await space.open({ backend: 'cas' })).snapshot()).toMatchObject({ backend: 'cas' })
    } finally {
      run('umount', '-l', space.home)
    }
  },
)

describe('a damaged one', () => {
  const cutOff = (file: string) => truncateSync(file, 20)
  const linkToItself = (file: string) => {
    rmSync(file)
    symlinkSync(file, file)
  }
  const text = /is cut off \(20 B of \d+ B\)/

  test.each<[string, (file: string) => void, RegExp]>([
    ['cut off', cutOff, text],
    ['missing', file => rmSync(file), /is missing/],
    ['longer', file => writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.alloc(1)])), /is longer/],
    ['not to be read', linkToItself, /cannot be read \(.*link.*\)/],
  ])('that is %s is seen by a look; going back works; repair writes it again', async (_, damage, why) => {
    await snapshot('one')
    await snapshot('two')
    const savepoint = await space.open()
    damage(savepoint.nativeUsage('one')!.where)
    expect(savepoint.snapshots().map(one => one.damage)).toEqual([expect.stringMatching(why), undefined])
    expect(savepoint.log().map(node => node.snapshot.damage)).toEqual([undefined, expect.stringMatching(why)])
    await savepoint.rollback('one')
    expect(space.read('a')).toBe('one\n')
    expect(space.notices.at(-1)).toMatch(why)
    await expectMended(why)
    expect(savepoint.find('one').damage).toBeUndefined()
  })

  test('in which a bit has changed is found by verify, and written again', async () => {
    await snapshot('one')
    flipIn(archives.kept(space)[0]!)
    await expectMended(/is damaged \(its checksum is another one\)/)
  })

  test('that lacks one byte of many, and one that cannot be written again: the others are', async () => {
    const file = (label: string) => savepoint.nativeUsage(label)!.where
    space.write('noise', noise(100_000, 1))
    await snapshot('one')
    await snapshot('two')
    const savepoint = await space.open()
    truncateSync(file('two'), statSync(file('two')).size - 1)
    expect(savepoint.find('two').damage).toMatch(/is cut off \(\d{6} of \d{6} bytes\)/)
    rmSync(file('one'))
    mkdirSync(file('one'))
    const { problems, repaired } = await savepoint.verify({ repair: true })
    expect(problems.map(({ what }) => what)).toEqual([expect.stringMatching(/is missing\. Cannot archive.*directory/)])
    expect(repaired.join()).toMatch(/bytes\); written again/)
    rmSync(file('one'), { recursive: true })
    expect((await savepoint.verify({ repair: true })).problems).toEqual([])
  })

  test('is said by every command that lists it, with what to do', async () => {
    await snapshot('one')
    cutOff(archives.kept(space)[0]!)
    expect(cli(space, ['snapshots']).stdout).toMatch(/one .*ARCHIVE DAMAGED\n/)
    expect(cli(space, ['log']).stdout).toMatch(/ARCHIVE DAMAGED\n/)
    expect(cli(space, ['show', 'one']).stdout).toMatch(new RegExp(`its archive ${text.source}.*verify --repair`))
    expect(JSON.parse(cli(space, ['show', 'one', '--json']).stdout).damage).toMatch(text)
    const found = cli(space, ['verify'])
    expect([found.status, found.stdout]).toEqual([14, expect.stringContaining('To repair: savepoint verify --repair')])
    const mended = cli(space, ['verify', '--repair'])
    expect([mended.status, mended.stdout]).toEqual([0, expect.stringMatching(/^Repaired: .*written again\nAll good/m)])
    expect(cli(space, ['snapshots']).stdout).not.toContain('DAMAGED')
  })

  test('store is mended from archives that are whole', async () => {
    space.write('noise', noise(100_000, 1))
    const { root } = await snapshot('one')
    rmSync(space.at('noise'))
    for (const pack of globSync('store/packs/*.pack', { cwd: space.home })) flipIn(join(space.home, pack))
    const savepoint = await space.open()
    const { problems, isRepairable } = await savepoint.verify()
    expect(isRepairable).toBe(true)
    expect(problems.map(({ what }) => what).join()).toMatch(
      /lost .*: its archive is whole, `savepoint verify --repair`/,
    )
    const repaired = await savepoint.verify({ repair: true })
    expect([repaired.problems, repaired.repaired.join()]).toEqual([[], expect.stringContaining('is stored again from')])
    await savepoint.rollback('one')
    expect(savepoint.head().root).toBe(root)
    expect(readFileSync(space.at('noise')).equals(noise(100_000, 1))).toBe(true)
    expect((await savepoint.verify()).problems).toEqual([])
  })

  test('store: what it has lost stays in an archive beyond max_count', async () => {
    configure('snapshots: {retention: {max_count: 1}}\n')
    space.write('noise', noise(100_000, 1))
    await snapshot('one')
    for (const pack of globSync('store/packs/*.pack', { cwd: space.home })) flipIn(join(space.home, pack))
    space.write('noise', 'other\n')
    await snapshot('two')
    expect(archives.kept(space)).toHaveLength(2)
    expect(space.notices.join()).toMatch(/snap_\w+ stays in archive, beyond its limit: the store has lost parts of it/)
    const savepoint = await space.open()
    expect((await savepoint.verify({ repair: true })).problems).toEqual([])
    expect((await savepoint.prune()).leftToStore).toMatchObject([{ snapshot: { label: 'one' } }])
    expect(archives.kept(space)).toHaveLength(1)
    await savepoint.rollback('one')
    expect(readFileSync(space.at('noise')).equals(noise(100_000, 1))).toBe(true)
  })

  test('store is mended from archives, whatever limits were set since', async () => {
    space.write('noise', noise(3_000_000, 1))
    const { root } = await snapshot('one')
    for (const pack of globSync('store/packs/*.pack', { cwd: space.home })) flipIn(join(space.home, pack))
    rmSync(join(space.home, 'store/clones'), { recursive: true, force: true })
    configure('snapshots: {max_file_bytes: 1 MB}\n')
    const savepoint = await space.open()
    expect((await savepoint.verify({ repair: true })).problems).toEqual([])
    rmSync(space.at('noise'))
    await savepoint.rollback('one')
    expect(savepoint.head().root).toBe(root)
    expect(readFileSync(space.at('noise')).equals(noise(3_000_000, 1))).toBe(true)
  })

  async function expectMended(why: RegExp): Promise<void> {
    const savepoint = await space.open()
    const { problems, isRepairable } = await savepoint.verify()
    expect(problems.map(({ what }) => what)).toEqual([expect.stringMatching(why)])
    expect(isRepairable).toBe(true)
    const { problems: left, repaired } = await savepoint.verify({ repair: true })
    expect([left, repaired.join()]).toEqual([[], expect.stringMatching(/; written again$/)])
    expect((await savepoint.verify()).problems).toEqual([])
  }
})

describe('how many', () => {
  test('max_count of them stay, ten unless somebody says another number; no snapshot goes', async () => {
    for (let i = 1; i <= 12; i++) await snapshot(`${i}`)
    expect(archives.kept(space)).toHaveLength(10)
    const savepoint = await space.open()
    const backends = savepoint.snapshots().map(({ backend }) => backend)
    expect(backends).toEqual(['cas', 'cas', ...Array(10).fill('archive')])
    expect(savepoint.read('1', 'a').toString()).toBe('1\n')
    const operations = cli(space, ['log', '--operations']).stdout
    expect(operations.match(/to the store alone \(was: archive\) \(rule: max_count \(10\)\)/g)).toHaveLength(2)
  })

  test('prune says which ones a lower number leaves to the store, and does it', async () => {
    for (let i = 1; i <= 3; i++) await snapshot(`${i}`)
    configure('snapshots: {retention: {max_count: 1}}\n')
    const dry = cli(space, ['prune', '--dry-run'])
    expect(
      dry.stdout.match(/Would leave snap_\w+ to the store alone \(was: archive\): max_count \(1\)\n/g),
    ).toHaveLength(2)
    expect(JSON.parse(cli(space, ['prune', '--dry-run', '--json']).stdout).left_to_store).toHaveLength(2)
    expect(archives.kept(space)).toHaveLength(3)
    expect(cli(space, ['prune']).stdout.match(/Left snap_/g)).toHaveLength(2)
    expect(archives.kept(space)).toHaveLength(1)
    expect(cli(space, ['snapshots']).stdout).toContain('3 snapshots')
  })

  test('one that two snapshots share, after compact, counts once and stays as long as one of them', async () => {
    configure('snapshots: {retention: {max_count: 2}}\n')
    await snapshot('1')
    await snapshot('2')
    await (await space.open()).compact(['1', '2'], { label: 'both' })
    await snapshot('3')
    const savepoint = await space.open()
    expect(savepoint.snapshots().map(({ label, backend }) => [label, backend])).toEqual([
      ['both', 'archive'],
      ['3', 'archive'],
    ])
    expect((await savepoint.verify()).problems).toEqual([])
    await snapshot('4')
    expect((await space.open()).find('both').backend).toBe('cas')
    expect((await savepoint.verify()).problems).toEqual([])
  })
})
