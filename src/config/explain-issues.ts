/** zod's issues in the words of the configuration: which key, what is wrong, and what was probably meant. */
import type { z } from 'zod'
import { backendNames } from '../model/backend-name.ts'
import { formatCount } from '../model/format.ts'
import { nearest } from '../model/suggest.ts'
import { archiveCompressions, defaultConfig, keysOf, tracerNames } from './config.ts'
import { quote } from './problem.ts'

export interface Explained {
  keyPath: PropertyKey[]
  what: string
  fix?: string
}

/** `root` is the value that was validated. An issue can name several unknown keys: one explanation for each. */
export function* explainIssues(issues: z.core.$ZodIssue[], root: unknown): Generator<Explained> {
  for (const issue of issues) {
    if (issue.code !== 'unrecognized_keys') yield explainValue(issue, root)
    else for (const key of issue.keys) yield explainUnknownKey(issue.path, key)
  }
}

function explainValue({ path, message }: z.core.$ZodIssue, root: unknown): Explained {
  const value = valueAt(root, path)
  const item = path.at(-1)
  const name = typeof item === 'number' ? `item ${item + 1} of ${dotted(path.slice(0, -1))}` : dotted(path)
  return { keyPath: path, what: `${name} ${message}, but is ${describe(value)}`, fix: fixValue(path, value) }
}

function explainUnknownKey(sectionPath: PropertyKey[], key: string): Explained {
  const section = dotted(sectionPath)
  const what = section ? `${quote(key)} is not a key of ${section}` : `${quote(key)} is not a key`
  return { keyPath: [...sectionPath, key], what, fix: suggestKey(section, key) }
}

const leafKeys = keysOf(defaultConfig)
const allKeys = [...new Set(leafKeys.flatMap(withSections))]

/** "a.b.c" → a, a.b, a.b.c */
function withSections(key: string): string[] {
  const names = key.split('.')
  return names.map((_, index) => names.slice(0, index + 1).join('.'))
}

/** The very name elsewhere, else a similar one in this section, else a similar one elsewhere, else what there is. */
function suggestKey(section: string, key: string): string {
  if (key.includes('.') && allKeys.includes(key)) return `Did you mean ${key}? Each dot is a level: ${nested(key)}.`
  const here = allKeys.filter(candidate => parentOf(candidate) === section)
  const fullName = (name: string) => allKeys.find(candidate => nameOf(candidate) === name)
  const similarHere = nearest(key, here.map(nameOf))
  const meant =
    fullName(key) ?? (similarHere && here.find(candidate => nameOf(candidate) === similarHere)) ?? similarAnywhere(key)
  return meant ? `Did you mean ${meant}?` : `Known here: ${here.map(nameOf).join(', ')}.`
}

function similarAnywhere(key: string): string | undefined {
  const name = nearest(key, allKeys.map(nameOf))
  return nearest(key, allKeys) ?? allKeys.find(candidate => name !== undefined && nameOf(candidate) === name)
}

/** "a.b" → "a: { b: … }" */
function nested(key: string): string {
  const [last, ...around] = key.split('.').reverse()
  return around.reduce((inner, name) => `${name}: { ${inner} }`, `${last}: …`)
}

function nameOf(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1)
}

function parentOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('.')))
}

const booleanWords = new Map([
  ['yes', 'true'],
  ['on', 'true'],
  ['no', 'false'],
  ['off', 'false'],
])

function fixValue(path: PropertyKey[], value: unknown): string | undefined {
  const key = dotted(path)
  const expected = valueAt(defaultConfig, path)
  if (value === null || value === undefined) return `Give ${key} a value, or remove the line.`
  if (typeof value !== 'string') return undefined
  if (allKeys.includes(key) && !leafKeys.includes(key)) return suggestKey(key, value)
  if (Array.isArray(expected)) return `Write ${nameOf(key)}: [${quote(value)}].`
  const meant =
    typeof expected === 'boolean'
      ? (booleanWords.get(value.toLowerCase()) ?? nearest(value, ['true', 'false']))
      : nearest(value, choicesOf.get(key) ?? [])
  return meant && `Write ${nameOf(key)}: ${meant}.`
}

const choicesOf = new Map<string, readonly string[]>([
  ['snapshots.backend', backendNames],
  ['snapshots.archive_compression', archiveCompressions],
  ['tracing.tracer', tracerNames],
])

function valueAt(root: unknown, path: PropertyKey[]): unknown {
  return path.reduce<unknown>((at, step) => (at as Record<PropertyKey, unknown> | undefined)?.[step], root)
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'object') return 'a section'
  return typeof value === 'number' ? formatCount(value).replace('unlimited', '.inf') : String(value)
}

function dotted(path: PropertyKey[]): string {
  return path.map(String).join('.')
}
