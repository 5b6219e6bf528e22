/** How much of a list stands in one line. */
const MOST = 20
const ROOM_CHARS = 1500

/** The first of them, one at least. */
export function fitting<T>(all: readonly T[], text: (each: T) => string): T[] {
  let left = ROOM_CHARS
  const beyond = all.findIndex((each, i) => {
    left -= text(each).length
    return i === MOST || (i > 0 && left < 0)
  })
  return beyond < 0 ? [...all] : all.slice(0, beyond)
}

export const fits = (words: readonly string[]): boolean => fitting(words, word => word).length === words.length
