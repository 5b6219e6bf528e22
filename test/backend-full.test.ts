/** A filesystem that is full, below a target: what cannot be done is said in words that fit, and nothing is lost. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { onBtrfs, run, useDisk } from './support/backend-scene.ts'
import { builtCommand, savepoint } from './support/built-cli.ts'
import { canMount, gated } from './support/machine.ts'
import { Workspace } from './support/workspace.ts'

const small = onBtrfs('noatime', true)
/** What is deleted is free afterwards: within a second, and not within thirty. */
function settle(): void {
  run('mount', '-o', 'remount,commit=1', small.disk())
  run('btrfs', 'subvolume', 'sync', small.disk())
  run('btrfs', 'filesystem', 'sync', small.disk())
  run('mount', '-o', 'remount,commit=30', small.disk())
}
/** Again after a sync: what was only reserved is free then. */
const fillUp = `for pass in 1 2 3; do dd if=/dev/urandom of=fill$pass bs=64k 2>/dev/null || true
  while echo x > "f$((n += 1))"; do :; done 2>/dev/null || true; sync; done`

useDisk(small)

gated(small.possible, small.needs, 'btrfs, which says that some is left: an empty directory has no room', async () => {
  const elsewhere = new Workspace()
  const space = small.make()
  const { home } = elsewhere
  try {
    space.write('a', '1\n')
    mkdirSync(space.at('empty'))
    await (await space.open({ home })).snapshot({ label: 'one' })
    rmdirSync(space.at('empty'))
    space.write('a', '2\n')
    space.sh(fillUp)
    const savepoint = await space.open({ home, backend: 'cas' })
    await expect(savepoint.rollback('one', { paths: ['empty'] })).rejects.toMatchObject({
      code: 'disk.full',
      message: expect.stringMatching(
        /^Cannot (restore anything: the disk (has .* left, too little|takes nothing new)|write anything in the target: the disk is full)/,
      ),
    })
    await expect(savepoint.rollback('one', { to: join(space.base, 'elsewhere') })).rejects.toMatchObject({
      code: 'disk.full',
      message: expect.stringMatching(/^Cannot restore to .*elsewhere: the disk is full$/),
    })
    expect([space.read('a'), existsSync(space.at('empty'))]).toEqual(['2\n', false])
    space.sh('rm -f fill* f[0-9]*; sync')
    await savepoint.rollback('one')
    expect([space.read('a'), existsSync(space.at('empty'))]).toEqual(['1\n', true])
  } finally {
    small.remove(space)
    elsewhere.remove()
  }
})

gated(small.possible, small.needs, 'a home on a full btrfs can be read, and says that it is full', async () => {
  const space = small.make()
  try {
    space.write('a', '1\n')
    space.write('savepoint.yaml', 'snapshots: {min_free_bytes: 0}\n')
    // A command leaves the log of the database and its index behind: begun anew, that needs room on btrfs.
    const [program, ...args] = builtCommand
    const env = { ...space.env, SAVEPOINT_HOME: space.home }
    execFileSync(program!, [...args, 'snapshot', '--backend', 'cas', '-m', 'one'], { cwd: space.dir, env })
    space.sh(fillUp)
    const savepoint = await space.open()
    expect(savepoint.snapshots().map(({ label }) => label)).toEqual(['one'])
    expect(savepoint.read('one', 'a').toString()).toBe('1\n')
    await expect(savepoint.snapshot({})).rejects.toMatchObject({
      code: 'disk.full',
      message: `Cannot write to ${space.home}: its disk is full`,
    })
    savepoint.close()
    space.sh('rm -f fill* f[0-9]*; sync')
    expect(await (await space.open()).snapshot({ label: 'two' })).toMatchObject({ backend: 'btrfs' })
  } finally {
    small.remove(space)
  }
})

gated(small.possible, small.needs, 'a quota that no free space shows: what goes anyway makes room', async () => {
  const elsewhere = new Workspace()
  const space = small.make()
  const { home } = elsewhere
  try {
    run('btrfs', 'quota', 'enable', small.disk())
    space.sh('head -c 2000000 /dev/urandom > large')
    const savepoint = await space.open({ home, backend: 'cas' })
    await savepoint.snapshot({ label: 'one' })
    space.sh('rm large; head -c 4000000 /dev/urandom > other; sync')
    run('btrfs', 'quota', 'rescan', '-w', small.disk())
    run('btrfs', 'qgroup', 'limit', '5M', space.dir)
    await savepoint.rollback('one')
    expect([existsSync(space.at('large')), existsSync(space.at('other'))]).toEqual([true, false])
  } finally {
    run('btrfs', 'quota', 'disable', small.disk())
    small.remove(space)
    elsewhere.remove()
  }
})

gated(
  small.possible,
  small.needs,
  'a quota on the home: what did not fit goes again, and it is said what is lacking',
  async () => {
    const elsewhere = new Workspace()
    const home = join(small.disk(), 'home')
    const cli = (...args: string[]) =>
      savepoint(elsewhere, args, { env: { ...elsewhere.env, SAVEPOINT_HOME: home, SAVEPOINT_BACKEND: 'cas' } })
    const stored = () => Number(run('du', '-sb', join(home, 'store/packs')).split('\t')[0])
    const packs = () => readdirSync(join(home, 'store/packs')).map(name => join(home, 'store/packs', name))
    run('btrfs', 'subvolume', 'create', home)
    try {
      run('btrfs', 'quota', 'enable', small.disk())
      run('btrfs', 'quota', 'rescan', '-w', small.disk())
      run('btrfs', 'qgroup', 'limit', '24M', home)
      writeFileSync(join(home, 'config.yaml'), 'snapshots: {min_free_bytes: 1 MB}\n')
      elsewhere.sh('head -c 20000000 /dev/urandom > first')
      // Nothing was there before.
      elsewhere.sh('head -c 20000000 /dev/urandom > more')
      const full = /^savepoint: Cannot capture: the quota is used up/
      expect(cli('snapshot')).toMatchObject({ status: 1, stderr: expect.stringMatching(full) })
      expect(stored()).toBeLessThan(1_000_000)
      elsewhere.sh('rm more; head -c 8000000 first > f; mv f first')
      expect(cli('snapshot', '-m', 'one')).toMatchObject({ status: 0 })
      elsewhere.sh('head -c 20000000 /dev/urandom > more')
      for (const _ of [1, 2]) {
        expect(cli('snapshot')).toMatchObject({ status: 1, stderr: expect.stringMatching(full) })
        expect(stored()).toBeLessThan(9_000_000)
      }
      const saved = expect.stringMatching(
        /Cannot save the state before the rollback: Cannot capture: the quota is used up/,
      )
      for (const _ of [1, 2]) {
        expect(cli('rollback', 'one')).toMatchObject({ status: 1, stderr: saved })
        expect(stored()).toBeLessThan(9_000_000)
      }
      elsewhere.sh('rm more; echo 2 > small')
      expect(cli('snapshot')).toMatchObject({ status: 0 })
      // What a killed one has left fills it up; only collection removes that.
      elsewhere.sh(`head -c 24000000 /dev/urandom >> '${packs()[0]}' || true; sync`)
      elsewhere.sh(`dd if=/dev/urandom of='${home}/fill' bs=1k 2>/dev/null || true; sync`)
      expect(cli('status')).toMatchObject({ status: 0 })
      const said = expect.stringMatching(/quota.*is used up/)
      elsewhere.sh('echo 3 > small')
      expect(cli('snapshot')).toMatchObject({ status: 1, stderr: said })
      expect(cli('gc')).toMatchObject({ status: 0 })
      expect(stored()).toBeLessThan(9_000_000)
      expect(cli('snapshot')).toMatchObject({ status: 0 })
      expect(cli('rollback', 'one')).toMatchObject({ status: 0 })
      expect(cli('verify')).toMatchObject({ status: 0 })
    } finally {
      run('btrfs', 'quota', 'disable', small.disk())
      run('btrfs', 'subvolume', 'delete', home)
      elsewhere.remove()
    }
  },
)

gated(small.possible, small.needs, 'what a snapshot of the filesystem holds makes no room when it goes', async () => {
  const elsewhere = new Workspace()
  const space = small.make()
  const { home } = elsewhere
  try {
    space.sh('for i in 1 2 3 4; do head -c 3000000 /dev/urandom > wanted$i; done')
    await (await space.open({ home, backend: 'cas' })).snapshot({ label: 'one' })
    space.sh('rm wanted*; for i in 1 2 3; do head -c 5000000 /dev/urandom > present$i; done')
    run('btrfs', 'subvolume', 'snapshot', '-r', space.dir, join(space.base, 'theirs'))
    // Room for a part.
    space.sh('sync; head -c $(($(stat -f -c "%a * %S" .) - 6000000)) /dev/urandom > ../fill; sync')
    const savepoint = await space.open({ home, backend: 'cas' })
    const hint = expect.stringMatching(
      /has changed since: `savepoint rollback snap_\w+ --to DIR` writes it to another disk$/,
    )
    await expect(savepoint.rollback('one')).rejects.toMatchObject({ code: 'disk.full', hint })
    expect(readdirSync(space.dir)).toEqual(['present1', 'present2', 'present3'])
    await space.open({ home })
    expect(space.notices).toEqual([])
    rmSync(join(space.base, 'fill'))
    run('btrfs', 'filesystem', 'sync', space.dir)
    await savepoint.rollback('one')
    expect(readdirSync(space.dir)).toEqual(['wanted1', 'wanted2', 'wanted3', 'wanted4'])
  } finally {
    small.remove(space)
    elsewhere.remove()
  }
})

gated(small.possible, small.needs, 'the one that it keeps holds the room: what the hint says makes some', async () => {
  settle()
  const elsewhere = new Workspace()
  const space = small.make()
  const { home } = elsewhere
  try {
    space.sh('for i in 1 2 3 4; do head -c 3000000 /dev/urandom > wanted$i; done')
    const savepoint = await space.open({ home })
    const { id } = await savepoint.snapshot({ label: 'one' })
    space.sh('rm wanted*; sync; head -c $(($(stat -f -c "%a * %S" .) - 6000000)) /dev/urandom > ../fill; sync')
    const older = 'with `snapshots.retention.native_max: 1`, `savepoint prune` leaves older ones to the store'
    const refused = (hint: string) =>
      expect(savepoint.rollback('one')).rejects.toMatchObject({
        code: 'disk.full',
        hint: expect.stringContaining(hint),
      })
    await refused(
      `: take one more (\`savepoint snapshot\`): ${older}; or \`savepoint rollback ${id} --to DIR\` writes it to another disk`,
    )
    await savepoint.snapshot({ label: 'two' })
    await refused(`since: ${older}`)
    writeFileSync(join(home, 'config.yaml'), 'snapshots: {retention: {native_max: 1}}\n')
    await (await space.open({ home })).prune()
    settle()
    await savepoint.rollback('one')
    expect(readdirSync(space.dir)).toEqual(['wanted1', 'wanted2', 'wanted3', 'wanted4'])
  } finally {
    small.remove(space)
    elsewhere.remove()
  }
})

gated(canMount, 'root', 'a disk without a byte left: nobody is told that 0 B have no room', async () => {
  const space = new Workspace()
  run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', space.dir)
  try {
    mkdirSync(space.at('empty'))
    await (await space.open()).snapshot({ label: 'one' })
    rmdirSync(space.at('empty'))
    space.sh('dd if=/dev/urandom of=fill bs=64k 2>/dev/null || true')
    const savepoint = await space.open()
    await expect(savepoint.rollback('one', { paths: ['empty'] })).rejects.toMatchObject({
      code: 'disk.full',
      message: 'Cannot restore anything: the disk has 0 B left, too little for directories and records',
    })
    // Without what the whole of it deletes, there is room.
    await savepoint.rollback('one')
    expect(existsSync(space.at('empty'))).toBe(true)
  } finally {
    run('umount', space.dir)
    space.remove()
  }
})

const canTry = canMount && small.possible
gated(canTry, small.needs, 'what is kept free of the disk of the store stays free, but for who goes back', async () => {
  const elsewhere = new Workspace()
  const space = small.make()
  const { home } = elsewhere
  mkdirSync(home)
  run('mount', '-t', 'tmpfs', '-o', 'size=40m', 'none', home)
  const used = () => Number(run('df', '--output=used', '-k', home).trim().split('\n')[1])
  try {
    writeFileSync(join(home, 'config.yaml'), 'snapshots: {min_free_bytes: 25 MB}\n')
    space.sh('for i in 1 2 3; do head -c 7000000 /dev/urandom > noise$i; done')
    const message = expect.stringMatching(/^Cannot capture: fewer than 25 MB would stay free on the disk of the store/)
    await expect((await space.open({ home, backend: 'cas' })).snapshot()).rejects.toMatchObject({ message })
    expect(used()).toBeLessThan(5000)

    await (await space.open({ home, leaveUnread: true })).snapshot({ label: 'one' })
    const said = expect.stringMatching(/is not read yet: Cannot capture: fewer than 25 MB would stay free/)
    const looking = await space.open({ home })
    await looking.status()
    expect(space.notices).toEqual([said])
    expect([looking.find('one').files, used() < 5000]).toEqual([0, true])
    space.sh('rm noise1')
    await looking.rollback('one')
    expect(readdirSync(space.dir)).toContain('noise1')
    // What it needs, and not the others.
    expect([looking.find('one').files, used() > 7000, used() < 12_000]).toEqual([0, true, true])
  } finally {
    small.remove(space)
    run('umount', home)
    elsewhere.remove()
  }
})
