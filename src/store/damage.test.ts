/** Databases whose statements are kept. */
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { explainDamage } from './damage.ts'

const opened = (): DatabaseSync => {
  const database = new DatabaseSync(':memory:')
  explainDamage(database, 'file', 'hint')
  database.exec('CREATE TABLE numbers (n INTEGER); INSERT INTO numbers VALUES (1), (2), (3)')
  return database
}

describe('a database', () => {
  test('is let go when it is closed, with its statements', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const COUNT = 20
    const closed = Array.from({ length: COUNT }, () => {
      const database = opened()
      database.prepare('SELECT n FROM numbers').all()
      database.close()
      return new WeakRef(database)
    })
    // What holds what is in parts outside of what is collected: each part takes a round.
    for (let round = 0; round < 10; round++) {
      await turn()
      collect()
    }
    expect(closed.filter(each => each.deref() !== undefined)).toHaveLength(0)
  })

  test('goes through the same rows twice at a time', () => {
    const database = opened()
    const sql = 'SELECT n FROM numbers ORDER BY n'
    const pairs: unknown[] = []
    for (const { n } of database.prepare(sql).iterate())
      for (const other of database.prepare(sql).iterate()) pairs.push([n, other.n])
    expect(pairs).toHaveLength(9)
    database.close()
  })

  test('answers a kept statement by the columns of now', () => {
    const database = opened()
    const all = () => database.prepare('SELECT * FROM numbers WHERE n = 1').get()
    expect(all()).toEqual({ n: 1 })
    database.exec("ALTER TABLE numbers ADD COLUMN word TEXT DEFAULT 'one'")
    expect(all()).toEqual({ n: 1, word: 'one' })
    database.close()
  })
})
