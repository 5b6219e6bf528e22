import { expect, test } from 'vitest'
import { chooseVersions } from './kept-choice.ts'

/** One letter for each version: its content; in upper case it is somebody else's. */
async function choose(versions: string, known?: string) {
  let reads = 0
  const contentOf = async ({ content }: { content: string }) => {
    reads++
    return content === '-' ? undefined : content
  }
  const all = [...versions].map((letter, at) => {
    const content = letter.toLowerCase()
    return { path: 'f', at, content, isOthers: letter !== content }
  })
  const chosen = await chooseVersions(all, contentOf, () => known)
  return { chosen: chosen.map(({ at }) => versions[at]).join(''), at: chosen.map(({ at }) => at), reads }
}

test('of few versions all, unread', async () => {
  expect(await choose('aab')).toMatchObject({ chosen: 'aab', reads: 0 })
})

test('of many the last three that differ, by as little reading as it takes', async () => {
  expect(await choose('abcdefghij')).toMatchObject({ chosen: 'hij', reads: 4 })
  // Of equal ones the first.
  expect((await choose('abccddd')).at).toEqual([1, 2, 4])
  expect(await choose('a-b-c-d-')).toMatchObject({ chosen: 'bcd' })
})

test('not what HEAD has', async () => {
  expect(await choose('habhchdh', 'h')).toMatchObject({ chosen: 'bcd' })
  expect((await choose('abhbhchd', 'h')).at).toEqual([1, 5, 7])
})

test("somebody else's beside them, however old", async () => {
  expect(await choose('aBcdXefgh')).toMatchObject({ chosen: 'BXfgh' })
  expect(await choose('abcDe')).toMatchObject({ chosen: 'cDe' })
  expect(await choose('axXxbcd')).toMatchObject({ chosen: 'Xbcd' })
  expect((await choose(`${'ABC'.repeat(10)}xyz`)).chosen).toHaveLength(20 + 3)
})

test('paths are apart, and stay in their order', async () => {
  const all = [1, 2, 3, 4].flatMap(at => [
    { path: 'f', at, isOthers: false },
    { path: `g${at}`, at, isOthers: false },
  ])
  const chosen = await chooseVersions(
    all,
    async ({ at }) => String(at),
    () => undefined,
  )
  expect(chosen.map(({ path, at }) => `${path} ${at}`).join()).toBe('g1 1,f 2,g2 2,f 3,g3 3,f 4,g4 4')
})
