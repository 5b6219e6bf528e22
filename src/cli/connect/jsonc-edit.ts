/** Changes one place of a JSON text, comments and layout of everything else untouched. */
import { isDeepStrictEqual } from 'node:util'
import { type JsonItem, type JsonNode, parseJsonc } from './jsonc-parse.ts'

const EMPTY = '{}\n'

/** Names of members, and numbers of elements. */
export type JsonPath = readonly (string | number)[]

/** The value at a path; undefined where there is none. */
export function getJson(text: string, path: JsonPath): unknown {
  let node: JsonNode | undefined = rootOf(text)
  for (const key of path) node = member(node, key)?.node
  return node?.value
}

/** Puts `value` there, making the objects on the way. The same text when it is there already. */
export function setJson(text: string, path: readonly string[], value: unknown): string {
  const source = text.trim() === '' ? EMPTY : text
  let node = rootOf(source)
  for (const [depth, key] of path.entries()) {
    const found = member(node, key)
    if (!found) {
      const inner = path.slice(depth + 1).reduceRight<unknown>((inside, name) => ({ [name]: inside }), value)
      return insert(source, node, depth, `${JSON.stringify(key)}: `, inner)
    }
    node = found.node
    if (depth < path.length - 1) requireObject(node, path.slice(0, depth + 1))
  }
  if (isDeepStrictEqual(node.value, value)) return source
  return splice(source, node.start, node.end, print(source, value, path.length))
}

/** Adds an element to the array at `path`, which is made if need be. */
export function addToJson(text: string, path: readonly string[], element: unknown): string {
  const existing = getJson(text, path)
  if (existing === undefined) return setJson(text, path, [element])
  const node = nodeAt(text, path)
  if (!Array.isArray(existing) || !node) throw new SyntaxError(`"${path.join('.')}" is no list`)
  return insert(text, node, path.length, '', element)
}

/** Takes the elements of the array at `path` away that `isOurs` says, and what is empty then. */
export function removeFromJson(text: string, path: JsonPath, isOurs: (element: unknown) => boolean): string {
  for (let current = text; ; ) {
    const node = nodeAt(current, path)
    const index = node?.items && Array.isArray(node.value) ? node.items.findIndex(item => isOurs(item.node.value)) : -1
    if (index < 0) return current === text ? text : removeEmpty(current, path)
    current = cut(current, node!, index)
  }
}

/** Takes a member away, and the objects on the way that are empty then. */
export function removeJson(text: string, path: JsonPath): string {
  const above = nodeAt(text, path.slice(0, -1))
  const index = above?.items?.findLastIndex(({ key }) => key === path.at(-1)) ?? -1
  if (!above || index < 0) return text
  return removeEmpty(cut(text, above, index), path.slice(0, -1))
}

function removeEmpty(text: string, path: JsonPath): string {
  const node = path.length === 0 ? undefined : nodeAt(text, path)
  return node?.items?.length === 0 && !hasComment(text, node) ? removeJson(text, path) : text
}

const hasComment = (text: string, { start, end }: JsonNode): boolean => text.slice(start + 1, end - 1).trim() !== ''

function rootOf(text: string): JsonNode {
  const root = parseJsonc(text.trim() === '' ? EMPTY : text)
  requireObject(root, [])
  return root
}

function requireObject(node: JsonNode, path: readonly string[]): void {
  if (node.items && !Array.isArray(node.value)) return
  throw new SyntaxError(`${path.length === 0 ? 'the file' : `"${path.join('.')}"`} is no object`)
}

/** Of several of the same name the last counts. */
const member = (node: JsonNode | undefined, key: string | number): JsonItem | undefined =>
  typeof key === 'number' ? node?.items?.[key] : node?.items?.findLast(item => item.key === key)

function nodeAt(text: string, path: JsonPath): JsonNode | undefined {
  let node: JsonNode | undefined = rootOf(text)
  for (const key of path) node = member(node, key)?.node
  return node
}

const splice = (text: string, start: number, end: number, by: string) => text.slice(0, start) + by + text.slice(end)

/** Behind the last item, which may have a comma and comments behind it. */
function insert(text: string, node: JsonNode, depth: number, before: string, value: unknown): string {
  const { eol, indent } = layoutOf(text)
  const added = `${eol}${indent.repeat(depth + 1)}${before}${print(text, value, depth + 1)}`
  const close = node.end - 1
  const behind = node.start + 1 + text.slice(node.start + 1, close).trimEnd().length
  const closing = `${eol}${indent.repeat(depth)}`
  const last = node.items!.at(-1)
  if (!last) return splice(text, behind, close, `${added}${closing}`)
  const hasComma = commaAfter(text, last.node.end) !== undefined
  const withNew = splice(text, behind, close, `${added}${hasComma ? ',' : ''}${closing}`)
  return hasComma ? withNew : splice(withNew, last.node.end, last.node.end, ',')
}

/** The item with its comma, or the one before it, and the line that it stood on. */
function cut(text: string, node: JsonNode, index: number): string {
  const item = node.items![index]!
  const comma = commaAfter(text, item.node.end)
  let end = comma === undefined ? item.node.end : comma + 1
  const lineStart = text.lastIndexOf('\n', item.start - 1)
  const isOwnLine = text.slice(lineStart + 1, item.start).trim() === '' && lineStart > node.start
  const start = isOwnLine ? lineStart - (text[lineStart - 1] === '\r' ? 1 : 0) : item.start
  if (!isOwnLine) end += /^ */.exec(text.slice(end))![0].length
  const without = splice(text, start, end, '')
  const previous = node.items![index - 1]
  if (comma !== undefined || !previous) return node.items!.length === 1 ? closeUp(without, node.start) : without
  const stray = commaAfter(without, previous.node.end)
  return stray === undefined ? without : splice(without, stray, stray + 1, '')
}

/** `{` and `}` of what is empty now, on one line. */
function closeUp(text: string, start: number): string {
  const gap = /\s*/y
  gap.lastIndex = start + 1
  const end = start + 1 + gap.exec(text)![0].length
  return /[}\]]/.test(text[end] ?? '') ? splice(text, start + 1, end, '') : text
}

/** Where the comma is that follows, past comments. */
function commaAfter(text: string, at: number): number | undefined {
  const gap = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
  gap.lastIndex = at
  const next = at + gap.exec(text)![0].length
  return text[next] === ',' ? next : undefined
}

function print(text: string, value: unknown, depth: number): string {
  const { eol, indent } = layoutOf(text)
  return JSON.stringify(value, null, indent).replaceAll('\n', `${eol}${indent.repeat(depth)}`)
}

/** As the file has it: its first indented line, its first line end. */
function layoutOf(text: string): { eol: string; indent: string } {
  return { eol: text.includes('\r\n') ? '\r\n' : '\n', indent: /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ' }
}
