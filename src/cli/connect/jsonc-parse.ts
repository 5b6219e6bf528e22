/** Reads JSON with comments and trailing commas, as agents allow it in their settings, and remembers where everything stands. */

export interface JsonNode {
  /** Offsets in the text; `end` is the one after it. */
  start: number
  end: number
  value: unknown
  /** Of an object or an array. */
  items?: JsonItem[]
}

export interface JsonItem {
  /** Of a member of an object. */
  key?: string
  /** Where it begins: at its key, or at its value. */
  start: number
  node: JsonNode
}

/** Throws a SyntaxError that names the line. */
export function parseJsonc(text: string): JsonNode {
  const reader = new Reader(text)
  const node = reader.value()
  reader.skip()
  if (reader.at < text.length) reader.fail('the end of the file')
  return node
}

const MAX_DEPTH = 200

class Reader {
  readonly text: string
  at: number
  #depth = 0

  constructor(text: string) {
    this.text = text
    this.at = text.startsWith('\ufeff') ? 1 : 0
  }

  fail(wanted: string): never {
    const line = this.text.slice(0, this.at).split('\n').length
    throw new SyntaxError(`line ${line}: ${wanted} is expected`)
  }

  /** Past white space and comments. */
  skip(): void {
    const gap = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
    gap.lastIndex = this.at
    this.at += gap.exec(this.text)![0].length
  }

  value(): JsonNode {
    this.skip()
    const start = this.at
    const next = this.text[start]
    if (next === '{' || next === '[') return this.#container(start, next === '{' ? '}' : ']')
    const word = /"(?:[^"\\\n]|\\.)*"|true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
    word.lastIndex = start
    const found = word.exec(this.text)?.[0] ?? this.fail('a value')
    this.at += found.length
    return { start, end: this.at, value: this.#parse(found) }
  }

  #parse(word: string): unknown {
    try {
      return JSON.parse(word)
    } catch {
      return this.fail('a valid string')
    }
  }

  #container(start: number, close: string): JsonNode {
    if (++this.#depth > MAX_DEPTH) this.fail('less nesting')
    this.at++
    const items: JsonItem[] = []
    for (this.skip(); this.text[this.at] !== close; this.skip()) {
      items.push(close === '}' ? this.#member() : this.#element())
      this.skip()
      if (this.text[this.at] === ',') this.at++
      else if (this.text[this.at] !== close) this.fail(`"," or "${close}"`)
    }
    this.at++
    this.#depth--
    const values = items.map(({ node }) => node.value)
    const pairs = items.map(({ key, node }) => [key!, node.value])
    return { start, end: this.at, value: close === '}' ? Object.fromEntries(pairs) : values, items }
  }

  #element(): JsonItem {
    const node = this.value()
    return { start: node.start, node }
  }

  #member(): JsonItem {
    const key = this.text[this.at] === '"' ? this.value() : this.fail('a name in quotes')
    this.skip()
    if (this.text[this.at] !== ':') this.fail('":"')
    this.at++
    return { key: key.value as string, start: key.start, node: this.value() }
  }
}
