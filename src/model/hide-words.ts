/** Hides words of recorded command lines when something is purged: those that speak of a path, or a text wherever it stands. */
import { isWithin, joinRaw, type Raw, relativeRaw } from './raw-path.ts'

export const PURGED = '[purged]'

/** The words with what is to be hidden hidden; undefined when there is nothing. `cwd` is absolute. */
export type HideWords = (words: readonly Raw[], cwd: Raw) => Raw[] | undefined

/** Every word that names the path as a whole: such a word is perhaps a script, and has its content beside its name. */
export function hidePath(target: Raw, path: Raw): HideWords {
  const [absolute, inTarget] = [joinRaw(target, path), naming(path)]
  const isAbsolute = naming(absolute)
  return (words, cwd) => {
    const isInside = isWithin(cwd, target)
    const here = isInside ? naming(relativeRaw(cwd.slice(target.length + 1), path)) : inTarget
    // Also from the root of the target, wherever it was said: a script may have gone there.
    return hideIn(words, word => ([here, inTarget, isAbsolute].some(pattern => pattern.test(word)) ? PURGED : word))
  }
}

export const hideText =
  (text: Raw): HideWords =>
  words =>
    hideIn(words, word => word.replaceAll(text, PURGED))

function hideIn(words: readonly Raw[], hide: (word: Raw) => Raw): Raw[] | undefined {
  const hidden = words.map(hide)
  return hidden.some((word, i) => word !== words[i]) ? hidden : undefined
}

/** Bytes beyond ASCII are parts of names. What is longer at either end is the name of something else. */
const inName = '[\\w.\\-\\x80-\\xff]'

function naming(path: Raw): RegExp {
  const escaped = path.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  return new RegExp(`(?<!${inName}|\\/)(?:\\.\\/)*${escaped}(?!${inName})`)
}
