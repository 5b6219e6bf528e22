/** What `export` leaves out and refuses, and what it and `import` leave behind. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { ctx, hex, makeAndExport, out, scratch, snapshot, work } from '../../test/support/archive-scratch.ts'
import { END, file, write } from '../../test/support/archive-tar.ts'
import { exportSnapshot } from './export.ts'
import { importArchive } from './import.ts'
import { rollback } from './rollback.ts'

const MIB = 1024 * 1024

describe('kept files', () => {
  beforeEach(() => {
    mkdirSync(join(work, 'sub'))
    for (const name of ['.env', 'sub/.env.local', 'sub/code.ts', 'environment'])
      writeFileSync(join(work, name), `content of ${name}`)
  })

  it('are left out, listed, and left alone by a rollback to the import', async () => {
    await snapshot()
    const result = await exportSnapshot(ctx, 'HEAD', out('x.tar'))
    expect(result).toMatchObject({ leftOut: ['.env', 'sub/.env.local'], files: 2 })
    expect(readFileSync(out('x.tar')).includes('content of .env')).toBe(false)
    const { snapshot: imported, files } = await importArchive(ctx, out('x.tar'))
    expect(files).toBe(2)
    writeFileSync(join(work, '.env'), 'newer')
    await rollback(ctx, imported.id, { all: true })
    expect(readFileSync(join(work, '.env'), 'utf8')).toBe('newer')
  })

  it('are in it when asked for', async () => {
    const before = await snapshot()
    expect(await exportSnapshot(ctx, 'HEAD', out('x.tar'), { withKept: true })).toMatchObject({ leftOut: [], files: 4 })
    expect(hex((await importArchive(ctx, out('x.tar'))).snapshot.root)).toBe(hex(before.root))
  })

  it('are those that the configuration names', async () => {
    ctx.config.snapshots.exclude.keep = ['/sub/*.ts', '!nothing']
    await snapshot()
    expect((await exportSnapshot(ctx, 'HEAD', out('x.tar'))).leftOut).toEqual(['sub/code.ts'])
  })
})

describe('export', () => {
  it('never overwrites without force, and only regular files with it', async () => {
    await makeAndExport('x.tar')
    writeFileSync(out('x.tar'), 'precious')
    await expect(exportSnapshot(ctx, 'HEAD', out('x.tar'))).rejects.toMatchObject({
      code: 'usage',
      hint: expect.stringContaining('--force'),
    })
    expect(readFileSync(out('x.tar'), 'utf8')).toBe('precious')
    ctx.force = true
    await exportSnapshot(ctx, 'HEAD', out('x.tar'))
    expect((await importArchive(ctx, out('x.tar'))).files).toBe(1)
    symlinkSync('x.tar', out('link.tar'))
    await expect(exportSnapshot(ctx, 'HEAD', out('link.tar'))).rejects.toMatchObject({ code: 'usage' })
  })

  it('names the file relative to cwd, and refuses what it cannot write', async () => {
    writeFileSync(join(work, 'a'), 'x')
    await snapshot()
    expect((await exportSnapshot(ctx, 'HEAD', '../here.tgz')).files).toBe(1)
    expect(existsSync(out('here.tgz'))).toBe(true)
    for (const name of ['x.zip', 'x', '-', ''])
      await expect(exportSnapshot(ctx, 'HEAD', name)).rejects.toMatchObject({ code: 'usage' })
    await expect(exportSnapshot(ctx, 'HEAD', 'missing/x.tar')).rejects.toMatchObject({ code: 'io.failed' })
    await expect(exportSnapshot(ctx, 'nothing', 'x.tar')).rejects.toMatchObject({ code: 'snapshot.unknown' })
  })

  it('leaves nothing behind when it fails or is cancelled', async () => {
    writeFileSync(join(work, 'a'), Buffer.alloc(5 * MIB, 'abc'))
    writeFileSync(join(work, 'b'), 'x')
    await snapshot()
    const before = readdirSync(scratch)
    ctx.signal = AbortSignal.abort()
    await expect(exportSnapshot(ctx, 'HEAD', out('x.tar.zst'))).rejects.toMatchObject({ code: 'cancelled' })
    await expect(importArchive(ctx, write(file('a'), END))).rejects.toMatchObject({ code: 'cancelled' })
    ctx.signal = undefined
    const packs = join(ctx.home, 'store/packs')
    for (const name of readdirSync(packs)) truncateSync(join(packs, name), 100)
    ctx.store.refresh()
    await expect(exportSnapshot(ctx, 'HEAD', out('x.tar.zst'))).rejects.toMatchObject({ code: 'store.damaged' })
    rmSync(out('bad.tar'))
    expect(readdirSync(scratch)).toEqual(before)
  })

  it('reports progress, and import does too', async () => {
    const seen: string[] = []
    ctx.progress = ({ phase, files }) => seen.push(`${phase} ${files}`)
    await makeAndExport('x.tar')
    await importArchive(ctx, out('x.tar'))
    expect(seen).toContain('exporting 1')
    expect(seen.at(-1)).toBe('importing 1')
  })
})

describe('import', () => {
  it('is an operation that undo takes back, and removes leftovers of a killed one', async () => {
    await makeAndExport('x.tar')
    mkdirSync(join(ctx.home, 'tmp'), { recursive: true })
    writeFileSync(join(ctx.home, 'tmp/import-0123'), 'left behind')
    const { snapshot: imported } = await importArchive(ctx, out('x.tar'))
    expect(ctx.db.operations().at(-1)).toMatchObject({
      kind: 'import',
      state: 'done',
      detail: { snapshot: imported.id },
    })
    expect(readdirSync(join(ctx.home, 'tmp'))).toEqual([])
    await expect(importArchive(ctx, out('x.tar'), { label: 'snap_x' })).rejects.toMatchObject({ code: 'name.invalid' })
  })
})
