/** Restores that cannot be carried out: refused before the first write, or taken back, and the message says which. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { SavepointError } from '../src/index.ts'
import { onFailpoint } from '../src/store/failpoint.ts'
import { runVerbs } from './support/engine-process.ts'
import { fullImageOf } from './support/full-image.ts'
import { canMount, gated, isRoot } from './support/machine.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { noise } from './support/tree-ops.ts'
import { Workspace } from './support/workspace.ts'

let ws: Workspace
let undo: (() => void)[] = []
beforeEach(() => {
  ws = new Workspace()
})
afterEach(() => {
  for (const step of undo.reverse()) step()
  undo = []
  ws.remove()
})

const failure = (work: Promise<unknown>): Promise<SavepointError> =>
  work.then(
    () => expect.unreachable('it should have failed'),
    error => error,
  )

describe('R10 a target that is not the one', () => {
  test('R10 another directory in its place: a clear error, nothing written; --force accepts it', async () => {
    ws.write('a', 'then')
    const { id } = await (await ws.open()).snapshot()
    fs.renameSync(ws.dir, `${ws.dir}-moved-away`)
    ws.write('b', 'a stranger')
    const before = imageOf(ws.dir, { untouched: true })
    // Found by its path, as after `rm -rf work; git clone … work`.
    fs.rmSync(`${ws.dir}-moved-away`, { recursive: true })
    const sp = await ws.open()
    for (const work of [() => sp.rollback(id), () => sp.snapshot(), () => sp.changes()]) {
      expect((await failure(work())).code).toBe('target.replaced')
    }
    expect(imageOf(ws.dir, { untouched: true })).toEqual(before)
    const forced = await ws.open({ force: true })
    const rolled = await forced.rollback(id)
    expect(ws.read('a')).toBe('then')
    expect(forced.read(rolled.safety!.id, 'b').toString()).toBe('a stranger')
  })
})

describe('R11 a store that has lost something', () => {
  let id: string
  const packs = () => fs.readdirSync(join(ws.home, 'store/packs')).map(name => join(ws.home, 'store/packs', name))
  const removePacks = () => packs().forEach(pack => void fs.rmSync(pack))
  /** Changes one bit in the content of d/lost. Incompressible content is stored as it is. */
  const flipBit = () => {
    const needle = noise(100, 1)
    const pack = packs().find(file => fs.readFileSync(file).includes(needle))!
    const bytes = fs.readFileSync(pack)
    bytes[bytes.indexOf(needle) + 50]! ^= 1
    fs.writeFileSync(pack, bytes)
  }

  /** `size` of d/lost: a large one has a block of its own, a small one shares it with the lists of directories. */
  async function prepare(size: number): Promise<void> {
    const sp = await ws.open()
    ws.write('d/lost', noise(size, 1))
    await sp.snapshot()
    ws.write('kept', noise(50_000, 2))
    id = (await sp.snapshot()).id
    ws.sh('rm d/lost; echo now > kept; echo new > new')
    sp.close()
  }

  test('R11 a flipped bit in a file: refused before the first write, the file is named, the rest can be restored', async () => {
    await prepare(700_000)
    flipBit()
    const before = imageOf(ws.dir, { untouched: true })
    const sp = await ws.open()
    const error = await failure(sp.rollback(id))
    expect([error.code, error.message]).toEqual(['store.damaged', expect.stringContaining('d/lost')])
    expect(imageOf(ws.dir, { untouched: true })).toEqual(before)
    expect((await sp.verify()).problems.flatMap(problem => problem.paths)).toContain('d/lost')
    await sp.rollback(id, { paths: ['kept'] })
    expect(fs.readFileSync(ws.at('kept')).equals(noise(50_000, 2))).toBe(true)
  })

  test.each([
    ['a flipped bit in a list of files', flipBit],
    ['missing packs', removePacks],
  ])('R11 %s: refused before the first write, other timelines work', async (_, damage) => {
    await prepare(50_000)
    damage()
    const before = imageOf(ws.dir, { untouched: true })
    const sp = await ws.open()
    expect((await failure(sp.rollback(id))).code).toBe('store.damaged')
    expect(imageOf(ws.dir, { untouched: true })).toEqual(before)
    expect((await sp.verify()).problems.length).toBeGreaterThan(0)

    const other = join(ws.base, 'other')
    fs.mkdirSync(other)
    fs.writeFileSync(join(other, 'a'), 'then')
    const theirs = await ws.open({ cwd: other })
    const snapshot = await theirs.snapshot()
    fs.rmSync(join(other, 'a'))
    await theirs.rollback(snapshot.id)
    expect(fs.readFileSync(join(other, 'a'), 'utf8')).toBe('then')
  })

  test('R11 after verify --repair the timeline goes on, what is lost is named, and what is intact comes back', async () => {
    await prepare(50_000)
    flipBit()
    const sp = await ws.open()
    await sp.verify({ repair: true })
    const { root } = await sp.snapshot({ label: 'after the repair' })
    const before = imageOf(ws.dir, { untouched: true })
    const error = await failure(sp.rollback(id))
    expect([error.code, error.message]).toEqual(['store.damaged', expect.stringMatching(/\bd\b/)])
    expect(imageOf(ws.dir, { untouched: true })).toEqual(before)
    await sp.rollback(id, { paths: ['kept'] })
    expect(fs.readFileSync(ws.at('kept')).equals(noise(50_000, 2))).toBe(true)
    await sp.rollback('after the repair')
    expect((await sp.snapshot()).root).toBe(root)
  })
})

describe('R12 a write fails in the middle', () => {
  const mount = (options: string) => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'none', ws.dir])
    undo.push(() => void execFileSync('umount', ['-l', ws.dir]))
  }
  const remount = (options: string) => execFileSync('mount', ['-o', `remount,${options}`, ws.dir])
  const once = (step: string, work: () => void) => {
    const stop = onFailpoint(step, () => {
      stop()
      work()
    })
    undo.push(stop)
  }
  const leftovers = () => fs.readdirSync(ws.dir).filter(name => name.startsWith('.savepoint-'))

  gated(
    canMount,
    'root that may mount',
    'R12 ENOSPC for lack of inodes: back as it was, said so, and it works when there is room',
    async () => {
      mount('size=64m,nr_inodes=60')
      const sp = await ws.open()
      for (let i = 0; i < 30; i++) ws.write(`d/f${i}`)
      const { id } = await sp.snapshot()
      const then = fullImageOf(ws.dir)
      ws.sh('rm -r d; echo edited > e; i=0; while [ $i -lt 40 ]; do echo x > n$i; i=$((i+1)); done')
      const before = fullImageOf(ws.dir)
      const error = await failure(sp.rollback(id))
      expect([error.code, error.hint]).toEqual([
        'disk.full',
        expect.stringMatching(/back as it was|nothing in the target was changed/),
      ])
      expect(differences(before, fullImageOf(ws.dir))).toEqual([])
      remount('nr_inodes=1000')
      await sp.rollback(id)
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
    },
  )

  gated(
    canMount,
    'root that may mount',
    'R12 ENOSPC while a large and small files are written: back as they were',
    async () => {
      mount('size=64m')
      const sp = await ws.open()
      ws.write('large', noise(6_000_000, 1))
      ws.write('small', noise(600_000, 2))
      const { id } = await sp.snapshot()
      ws.sh('rm large; echo now > small')
      const before = fullImageOf(ws.dir)
      once('restore:stage', () => ws.sh('dd if=/dev/zero of=filler bs=64k 2>/dev/null || true'))
      const error = await failure(sp.rollback(id))
      expect(error.code).toBe('disk.full')
      fs.rmSync(ws.at('filler'))
      expect(differences(before, fullImageOf(ws.dir))).toEqual([])
      await sp.rollback(id)
      expect(fs.readFileSync(ws.at('large')).equals(noise(6_000_000, 1))).toBe(true)
    },
  )

  gated(canMount, 'root that may mount', 'R12 too little room is refused before the first write', async () => {
    mount('size=24m')
    const sp = await ws.open()
    ws.write('large', noise(10_000_000, 1))
    ws.write('filler', 'small')
    const { id } = await sp.snapshot()
    ws.write('new', noise(1_000_000, 2))
    ws.sh('rm large; dd if=/dev/zero of=filler bs=1M count=16 2>/dev/null')
    const before = imageOf(ws.dir, { untouched: true })
    const error = await failure(sp.rollback(id))
    const hint = expect.stringMatching(/nothing was changed\. It would delete new \(1 MB\) anyway/)
    expect([error.code, error.hint]).toEqual(['disk.full', hint])
    expect(imageOf(ws.dir, { untouched: true })).toEqual(before)
  })

  gated(canMount, 'root that may mount', 'R12 a full disk does not keep from deleting', async () => {
    mount('size=8m')
    const sp = await ws.open()
    ws.write('a', 'then')
    const { id } = await sp.snapshot()
    ws.sh('dd if=/dev/zero of=filler bs=4096 2>/dev/null || true')
    await sp.rollback(id)
    expect(fs.readdirSync(ws.dir)).toEqual(['a'])
  })

  describe('what was made since fills the disk', () => {
    let id: string
    let then: Map<string, string>
    const prepare = async () => {
      mount('size=24m')
      const sp = await ws.open()
      ws.write('large', noise(10_000_000, 1))
      ws.write('a', 'then')
      id = (await sp.snapshot()).id
      then = fullImageOf(ws.dir)
      ws.sh('rm large; echo now > a; mkdir d; dd if=/dev/zero of=d/filler bs=1M count=16 2>/dev/null')
      return sp
    }

    gated(canMount, 'root that may mount', 'to the last byte: it goes first all the same', async () => {
      const sp = await prepare()
      ws.sh('dd if=/dev/zero of=rest bs=4096 2>/dev/null || true')
      expect(fs.statfsSync(ws.dir).bavail).toBe(0)
      await sp.rollback(id)
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
    })

    gated(canMount, 'root that may mount', 'it goes first, and undo and redo work the same way', async () => {
      const sp = await prepare()
      const before = fullImageOf(ws.dir)
      expect((await sp.rollback(id)).files).toMatchObject({ created: 1, deleted: 1, replaced: 1 })
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
      await sp.undo()
      expect(differences(before, fullImageOf(ws.dir))).toEqual([])
      await sp.redo()
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
      expect(leftovers()).toEqual([])
    })

    gated(canMount, 'root that may mount', 'killed after that: the next command completes it', async () => {
      await prepare()
      const { signal } = await runVerbs(ws, [['rollback', id]], { failpoint: 'restore:cleaned' })
      expect([signal, fs.existsSync(ws.at('d')), ws.read('a')]).toEqual(['SIGKILL', false, 'now\n'])
      const sp = await ws.open()
      expect(ws.notices.join('\n')).toContain('completed a rollback that was interrupted')
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
      await sp.undo()
      expect(fs.statSync(ws.at('d/filler')).size).toBe(16 * 1024 * 1024)
    })

    gated(canMount, 'root that may mount', 'and somebody takes the room: said, and completed later', async () => {
      const sp = await prepare()
      once('restore:cleaned', () => ws.sh('dd if=/dev/zero of=taken bs=1M count=18 2>/dev/null'))
      const error = await failure(sp.rollback(id))
      const hint = expect.stringContaining('Part of it was carried out')
      expect([error.code, error.hint, fs.existsSync(ws.at('d'))]).toEqual(['disk.full', hint, false])
      fs.rmSync(ws.at('taken'))
      await ws.open()
      expect(ws.notices.join('\n')).toContain('completed a rollback that was interrupted')
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
    })

    gated(canMount, 'root that may mount', 'of the store, too: it is named, and --no-safety takes it', async () => {
      mount('size=24m')
      const home = ws.at('.home')
      fs.mkdirSync(home)
      fs.writeFileSync(join(home, 'config.yaml'), 'snapshots:\n  min_free_bytes: 0\n')
      const sp = await ws.open({ home })
      ws.write('large', noise(5_000_000, 1))
      const { id } = await sp.snapshot()
      fs.rmSync(ws.at('large'))
      ws.write('filler', noise(15_000_000, 2))
      const error = await failure(sp.rollback(id))
      expect([error.code, error.hint]).toEqual([
        'disk.full',
        expect.stringMatching(/no room to save filler.*--no-safety/),
      ])
      expect(fs.existsSync(ws.at('filler'))).toBe(true)
      expect((await sp.rollback(id, { noSafety: true })).leftAlone).toEqual([])
      expect(fs.readdirSync(ws.dir).sort()).toEqual(['.home', 'large'])
    })
  })

  gated(
    canMount,
    'root that may mount',
    'R12 EROFS from the start: nothing to recover, and it works once writable',
    async () => {
      mount('size=64m')
      const sp = await ws.open()
      ws.write('a', 'then')
      const { id } = await sp.snapshot()
      ws.write('a', 'now')
      remount('ro')
      const error = await failure(sp.rollback(id))
      expect([error.code, error.hint]).toEqual(['io.failed', expect.stringContaining('back as it was')])
      expect(error.message).toBe('Cannot restore anything in the target: its filesystem is read-only')
      expect(ws.read('a')).toBe('now')
      expect(await failure(sp.undo())).toMatchObject({ code: 'operation.none' })
      remount('rw')
      await sp.rollback(id)
      expect(ws.read('a')).toBe('then')
    },
  )

  gated(
    canMount,
    'root that may mount',
    'R12 EROFS in the middle: said to be resumable, and the next command completes it',
    async () => {
      mount('size=64m')
      const sp = await ws.open()
      ws.write('a', 'then')
      ws.write('d/b', 'then')
      const { id } = await sp.snapshot()
      const then = fullImageOf(ws.dir)
      ws.sh('echo now > a; rm -r d; echo new > new')
      once('restore:staged', () => remount('ro'))
      const error = await failure(sp.rollback(id))
      expect([error.code, error.hint]).toEqual([
        'io.failed',
        expect.stringContaining('next savepoint command completes it'),
      ])
      expect(ws.read('a')).toBe('now\n')
      remount('rw')
      await ws.open()
      expect(ws.notices.join('\n')).toContain('completed a rollback that was interrupted')
      expect(differences(then, fullImageOf(ws.dir))).toEqual([])
      await (await ws.open()).undo()
      expect([ws.read('a'), ws.read('new')]).toEqual(['now\n', 'new\n'])
      expect(leftovers()).toEqual([])
    },
  )

  gated(
    isRoot,
    'root',
    'R12 an immutable file in the way: taken back as a whole, or left in its place and reported',
    async () => {
      const sp = await ws.open()
      ws.write('a', 'then')
      const { id } = await sp.snapshot()
      ws.write('a', 'now')
      ws.write('made/deep/fixed', 'immutable')
      ws.write('made/other', 'x')
      const chattr = (flag: string) => execFileSync('chattr', [flag, ws.at('made/deep/fixed')])
      chattr('+i')
      undo.push(() => chattr('-i'))
      const rolled = await sp.rollback(id)
      expect(rolled.leftAlone).toEqual([{ path: 'made', why: 'refused' }])
      expect([ws.read('a'), ws.read('made/deep/fixed'), ws.read('made/other')]).toEqual([
        'then',
        'immutable',
        undefined,
      ])
      expect(leftovers()).toEqual([])
      await sp.undo()
      expect([ws.read('a'), ws.read('made/other')]).toEqual(['now', 'x'])
    },
  )

  const locked: [flag: string, on: string, why: string][] = [
    ['i', "d/it's", 'it is immutable (chattr +i)'],
    ['a', "d/it's", 'it is append-only (chattr +a)'],
    ['i', 'd', 'd is immutable (chattr +i)'],
    ['i', '', 'the target directory is immutable (chattr +i)'],
  ]
  for (const [flag, on, why] of locked)
    gated(
      isRoot,
      'root',
      `R12 what may not be replaced for an inode flag is named with it: +${flag} "${on}"`,
      async () => {
        const sp = await ws.open()
        ws.write("d/it's", 'then')
        const { id } = await sp.snapshot()
        ws.write("d/it's", 'now')
        const chattr = (change: string) => execFileSync('chattr', [change, ws.at(on)])
        chattr(`+${flag}`)
        undo.push(() => chattr(`-${flag}`))
        const { message, hint } = await failure(sp.rollback(id))
        const what = on === '' ? 'anything in the target' : "d/it's"
        expect(message).toBe(`Cannot restore ${what}: ${why}`)
        const [, command] = /^The target is back as it was. Take that off with `(.*)` and try again$/.exec(hint!)!
        execFileSync('sh', ['-c', command!])
        await sp.rollback(id)
        expect(ws.read("d/it's")).toBe('then')
      },
    )
})
