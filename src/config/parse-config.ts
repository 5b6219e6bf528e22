/**
 * Text of a configuration file → what it sets, or one error with the position of everything that is wrong. Loads yaml
 * and zod, so it is imported only when there is a file.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml'
import type { PartialConfig } from './config.ts'
import { explainIssues } from './explain-issues.ts'
import { invalidFile, type Problem, printable, quote } from './problem.ts'
import { configSchema } from './schema.ts'

const maxAliases = 100
/** A file of nothing but mistakes must not keep us busy. */
const maxProblems = 100

/** `path` is only named in errors. An empty file sets nothing. Throws config.invalid. */
export function parseConfig(path: string, text: string): PartialConfig {
  const lines = new LineCounter()
  const at = (offset: number, what: string, fix?: string): Problem => {
    const { line, col } = lines.linePos(Math.min(offset, text.length))
    return { line: Math.max(1, line), column: Math.max(1, col), what, fix }
  }
  const document = parseYaml(path, text, lines, at)
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) return {}
  const value = toPlain(path, document, at)
  const result = configSchema.safeParse(value)
  if (result.success) return withoutNulls(result.data)
  const problems: Problem[] = []
  for (const { keyPath, what, fix } of explainIssues(result.error.issues, value)) {
    problems.push(at(offsetOf(document, keyPath), what, fix))
    if (problems.length === maxProblems) break
  }
  throw invalidFile(path, problems)
}

type ProblemAt = (offset: number, what: string, fix?: string) => Problem

function parseYaml(path: string, text: string, lineCounter: LineCounter, at: ProblemAt): Document {
  let document: Document
  try {
    // Duplicates are found below: the parser compares every key with every other one.
    document = parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: false, resolveKnownTags: false })
  } catch (cause) {
    throw invalidFile(path, [{ what: 'it is nested too deeply' }], cause)
  }
  const error = document.errors[0] ?? document.warnings[0]
  if (error) throw invalidFile(path, [at(error.pos[0], ...explainYaml(error.code, error.message))], error)
  const problems = findStructuralProblems(document, at)
  if (problems.length > 0) throw invalidFile(path, problems)
  return document
}

function explainYaml(code: string, message: string): [what: string, fix?: string] {
  switch (code) {
    case 'TAB_AS_INDENT':
      return ['a tab indents this line', 'YAML is indented with spaces: replace the tab.']
    case 'MULTIPLE_DOCS':
      return ['a second document begins here', 'Keep one document: remove the line "---" and what does not belong.']
    case 'TAG_RESOLVE_FAILED':
      return ['this value has a tag', 'Remove the word that begins with "!".']
    case 'RESOURCE_EXHAUSTION':
      return ['it is nested too deeply']
    default:
      return [`this is not YAML: ${printable(message.charAt(0).toLowerCase() + message.slice(1))}`]
  }
}

/** Keys that are written twice or are no words, and aliases that lead nowhere or are too many. */
function findStructuralProblems(document: Document, at: ProblemAt): Problem[] {
  const problems: Problem[] = []
  let aliases = 0
  const add = (node: unknown, what: string, fix?: string) => {
    problems.push(at(startOf(node), what, fix))
    return problems.length === maxProblems ? visit.BREAK : undefined
  }
  visit(document, {
    Map(_, map) {
      const firstOf = new Map<string, unknown>()
      for (const { key } of map.items) {
        const name = keyText(key)
        const first = name !== undefined && firstOf.get(name)
        if (name === undefined) return add(key, 'this is no key', 'A key is a plain word.')
        if (first) {
          const { line } = at(startOf(first), '')
          return add(key, `the key ${quote(name)} is written twice: first on line ${line}`, `Keep one ${quote(name)}.`)
        }
        firstOf.set(name, key)
      }
    },
    Alias(_, alias) {
      if (++aliases > maxAliases) {
        add(alias, `there are more than ${maxAliases} aliases`, 'Write the values out.')
        return visit.BREAK
      }
      return alias.resolve(document) ? undefined : add(alias, `the alias ${quote(`*${alias.source}`)} has no anchor`)
    },
  })
  return problems
}

function toPlain(path: string, document: Document, at: ProblemAt): unknown {
  const root = document.contents!
  if (!isMap(root)) {
    const found = isSeq(root) ? 'a list' : isScalar(root) ? `the text ${quote(String(root.value))}` : 'an alias'
    const fix = 'The file begins with "snapshots:" or "tracing:" and the keys indented beneath.'
    throw invalidFile(path, [at(startOf(root), `the file holds ${found} where keys belong`, fix)])
  }
  try {
    return document.toJS({ maxAliasCount: maxAliases })
  } catch (cause) {
    throw invalidFile(path, [at(startOf(root), 'its aliases expand to too much', 'Write the values out.')], cause)
  }
}

/** The offset of the key or list item that `keyPath` leads to, or of the nearest thing around it. */
function offsetOf(document: Document, keyPath: PropertyKey[]): number {
  let node: unknown = document.contents
  let offset = startOf(document.contents)
  for (const step of keyPath) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => keyText(key) === String(step))
      if (!pair) return offset
      offset = startOf(pair.key)
      node = pair.value
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step]
      offset = startOf(node)
    }
  }
  return offset
}

/** Undefined for what is no word: a list, a section or an alias as a key. */
function keyText(key: unknown): string | undefined {
  return isScalar(key) ? String(key.value ?? '') : undefined
}

function startOf(node: unknown): number {
  return (node as Node | null)?.range?.[0] ?? 0
}

/** An empty section ("snapshots:" and nothing beneath) sets nothing. */
function withoutNulls(part: object): PartialConfig {
  const entries = Object.entries(part).filter(([, value]) => value != null)
  const isNested = (value: unknown): value is object => typeof value === 'object' && !Array.isArray(value)
  return Object.fromEntries(entries.map(([name, value]) => [name, isNested(value) ? withoutNulls(value) : value]))
}
