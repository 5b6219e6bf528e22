/** `ignore.json`: which paths a recording leaves out. Made with sensible entries the first time it is wanted. */
import { realpathSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, normalize } from 'node:path'
import { readConfigFile } from '../config/read-file.ts'
import { homeOfAccount } from '../engine/home.ts'
import { errnoOf, errnoWords, SavepointError } from '../errors/errors.ts'
import { type Raw, rawFromText } from '../model/raw-path.ts'
import { makeDirs } from '../store/make-dirs.ts'

const defaults = [
  '$HOME/.cache',
  '$HOME/.claude',
  '$HOME/.codex',
  '$HOME/.cursor',
  '$XDG_CONFIG_HOME/savepoint/ignore.json',
  ...['/proc', '/sys', '/dev', '/usr', '/bin', '/lib', '/lib64'],
]
const hint = 'It must be a JSON array of strings: absolute paths, or such that begin with $HOME or $XDG_CONFIG_HOME'

interface Places {
  HOME: string | undefined
  XDG_CONFIG_HOME: string | undefined
}

function placesOf(env: NodeJS.ProcessEnv): Places {
  const HOME = env.HOME && isAbsolute(env.HOME) ? env.HOME : homeOfAccount()
  const given = env.XDG_CONFIG_HOME
  // A relative one is to be ignored, says the XDG specification.
  const XDG_CONFIG_HOME = given && isAbsolute(given) ? given : HOME && join(HOME, '.config')
  return { HOME, XDG_CONFIG_HOME }
}

export function ignoreFile(env: NodeJS.ProcessEnv): string | undefined {
  const { XDG_CONFIG_HOME } = placesOf(env)
  return XDG_CONFIG_HOME && join(XDG_CONFIG_HOME, 'savepoint', 'ignore.json')
}

/** What is not recorded, each with all below it. Throws when the file is not what it must be. */
export function ignoredPaths(env: NodeJS.ProcessEnv, notice: (text: string) => void): Raw[] {
  const places = placesOf(env)
  const file = ignoreFile(env)
  const entries = file === undefined ? defaults : readEntries(file, notice)
  const paths = entries.flatMap(entry => expand(entry, places, file))
  const all = file === undefined ? paths : [...paths, file]
  // The helper sees paths without links.
  return [...new Set(all.flatMap(path => [path, ...realPath(path)]))].map(rawFromText)
}

function readEntries(file: string, notice: (text: string) => void): string[] {
  const text = readConfigFile(file)
  if (text === undefined) {
    writeDefaults(file, notice)
    return defaults
  }
  let entries: unknown
  try {
    entries = JSON.parse(text)
  } catch (error) {
    throw invalid(file, (error as Error).message, error)
  }
  if (!isStrings(entries)) throw invalid(file, 'it is no array of strings')
  return entries
}

/** Without a schema: what makes those takes longer to load than all else that a recording needs before its command starts. */
const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(each => typeof each === 'string')

function writeDefaults(file: string, notice: (text: string) => void): void {
  try {
    makeDirs(dirname(file), 0o700)
    writeFileSync(file, `${JSON.stringify(defaults, null, 2)}\n`, { flag: 'wx' })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    if (errnoOf(error) !== 'EEXIST')
      notice(`${file} cannot be made (${errnoWords(error)}): the usual paths are ignored`)
  }
}

/** Nothing where the place that it names is not known. */
function expand(entry: string, places: Places, file: string | undefined): string[] {
  const variable = /^\$(HOME|XDG_CONFIG_HOME)(?=\/|$)/.exec(entry)
  if (variable) {
    const place = places[variable[1] as keyof Places]
    return place === undefined ? [] : [plain(place + entry.slice(variable[0].length))]
  }
  if (isAbsolute(entry)) return [plain(entry)]
  throw invalid(file ?? 'the list', `${JSON.stringify(entry)} is no absolute path`)
}

const plain = (path: string): string => normalize(path).replace(/(?<=.)\/+$/, '')

function realPath(path: string): string[] {
  try {
    return [realpathSync(path)]
  } catch {
    return []
  }
}

const invalid = (file: string, why: string, cause?: unknown): SavepointError =>
  new SavepointError('config.invalid', `Cannot use ${file}: ${why}. The command was not started`, { hint, cause })
