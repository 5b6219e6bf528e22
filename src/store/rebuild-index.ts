/** Makes the index anew from what a scan of the packs found. */
import { randomInt } from 'node:crypto'
import type { PackScan } from './scan-packs.ts'
import type { Store } from './store.ts'

/** SQLite keeps it as a signed one of 32 bits. */
const MAX_NUMBER = 2 ** 31

/** Returns what was done, in words. Packs keep all their bytes, damaged ones too. */
export function rebuildIndex(store: Store, scan: PackScan): string[] {
  const { index } = store
  const before = index.objectCount()
  index.transaction(() => {
    index.database.exec('DELETE FROM objects; DELETE FROM packs; DELETE FROM damaged')
    const insertPack = index.database.prepare('INSERT INTO packs (id, name, bytes) VALUES (?, ?, ?)')
    for (const [name, { id, bytes }] of scan.packs) insertPack.run(id, name, bytes)
    for (const [id, location] of scan.objects) index.add(id, location)
    index.database.exec(`PRAGMA user_version = ${randomInt(1, MAX_NUMBER)}`)
  })
  return [`the index was rebuilt: ${scan.objects.size} objects (it had ${before})`]
}
