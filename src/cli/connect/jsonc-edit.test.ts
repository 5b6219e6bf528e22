import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addToJson, getJson, removeFromJson, removeJson, setJson } from './jsonc-edit.ts'
import { parseJsonc } from './jsonc-parse.ts'

const PATH = ['mcpServers', 'savepoint']
const ENTRY = { command: 'savepoint', args: ['mcp'] }

const commented = `// mine
{
    "theme": "dark", // I like it
    /* others */
    "mcpServers": {
        "files": { "command": "files" } // the last
    },
    "list": [1, 2,],
}
`

describe('an entry', () => {
  it('is put in, with everything else as it was', () => {
    const text = setJson(commented, PATH, ENTRY)
    expect(text).toBe(`// mine
{
    "theme": "dark", // I like it
    /* others */
    "mcpServers": {
        "files": { "command": "files" }, // the last
        "savepoint": {
            "command": "savepoint",
            "args": [
                "mcp"
            ]
        }
    },
    "list": [1, 2,],
}
`)
    expect(setJson(text, PATH, ENTRY)).toBe(text)
    expect(removeJson(text, PATH)).toBe(commented)
  })

  it('is replaced where it stands', () => {
    const text = setJson(setJson(commented, PATH, { old: true }), PATH, ENTRY)
    expect(text).toBe(setJson(commented, PATH, ENTRY))
  })

  it.each([
    ['nothing', '', '{}\n'],
    ['an empty object', '{}\n', '{}\n'],
    ['one line', '{"a": 1}', '{"a": 1\n}'],
    ['CRLF', '{\r\n\t"a": 1\r\n}\r\n', '{\r\n\t"a": 1\r\n}\r\n'],
    ['a byte order mark', '\ufeff{\n  "a": 1\n}', '\ufeff{\n  "a": 1\n}'],
    ['a trailing comma', '{\n  "a": 1,\n}\n', '{\n  "a": 1,\n}\n'],
    ['a comment at the end', '{\n  "a": 1 // {"b": 2}\n  // end\n}\n', '{\n  "a": 1 // {"b": 2}\n  // end\n}\n'],
    ['an empty object with a comment', '{\n  // none\n}\n', '{\n  // none\n}\n'],
  ])('goes into %s, and out of it again', (_what, before, after) => {
    const text = setJson(before, PATH, ENTRY)
    expect(getJson(text, PATH)).toEqual(ENTRY)
    const again = removeJson(text, PATH)
    expect(again).toBe(after)
    expect(getJson(again, PATH)).toBeUndefined()
  })

  it('what is no object is refused', () => {
    expect(() => setJson('[]', PATH, ENTRY)).toThrow('the file is no object')
    expect(() => setJson('{"mcpServers": 1}', PATH, ENTRY)).toThrow('"mcpServers" is no object')
    for (const wrong of ['{', '{"a"}', '{"a": }', '{a: 1}', '{"a": 1 "b": 2}', '{} x', '"\\q"'])
      expect(() => setJson(wrong, PATH, ENTRY)).toThrow(SyntaxError)
  })
})

describe('a list', () => {
  const path = ['hooks', 'Stop']
  const isOurs = (element: unknown) => element === 'ours'

  it('gets an element and loses it', () => {
    const before = '{\n  "hooks": {\n    "Stop": [\n      "theirs" // keep\n    ]\n  }\n}\n'
    const text = addToJson(before, path, 'ours')
    expect(getJson(text, path)).toEqual(['theirs', 'ours'])
    expect(text).toContain('"theirs", // keep')
    expect(removeFromJson(text, path, isOurs)).toBe(before)
  })

  it('is made, and goes when it is empty', () => {
    const text = addToJson('{\n  "a": 1\n}\n', path, 'ours')
    expect(getJson(text, path)).toEqual(['ours'])
    expect(removeFromJson(text, path, isOurs)).toBe('{\n  "a": 1\n}\n')
    expect(removeFromJson('{}', path, isOurs)).toBe('{}')
  })
})

it('any settings mean the same afterwards', () => {
  const json = fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 })
  const clean = json.filter(value => !('__proto__' in value) && !JSON.stringify(value).includes('__proto__'))
  fc.assert(
    fc.property(clean, fc.constantFrom(undefined, 1, 2, '\t'), (settings, indent) => {
      const { mcpServers: _, ...others } = settings as Record<string, unknown>
      const before = JSON.stringify(others, null, indent)
      const text = setJson(before, PATH, ENTRY)
      expect(JSON.parse(text)).toEqual({ ...JSON.parse(before), mcpServers: { savepoint: ENTRY } })
      expect(parseJsonc(removeJson(text, PATH)).value).toEqual(JSON.parse(before))
    }),
  )
})
