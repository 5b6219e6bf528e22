import { describe, expect, it } from 'vitest'
import { headerOf, removeToml, setToml } from './toml-edit.ts'

const PATH = ['mcp_servers', 'savepoint']
const TABLE = { command: 'savepoint', args: ['mcp', '-t', 'a "b"'] }
const BLOCK = '[mcp_servers.savepoint]\ncommand = "savepoint"\nargs = ["mcp", "-t", "a \\"b\\""]\n'

const commented = `# mine
model = "x" # [mcp_servers.savepoint]
text = """
[mcp_servers.savepoint]
"""

[mcp_servers.files]
command = "files"

# about profiles
[profiles.a]
b = 1
`

describe('a table', () => {
  it('is put at the end, with everything else as it was, and taken away again', () => {
    const text = setToml(commented, PATH, TABLE)
    expect(text).toBe(`${commented}\n${BLOCK}`)
    expect(setToml(text, PATH, TABLE)).toBe(text)
    expect(removeToml(text, PATH)).toBe(commented)
  })

  it.each([
    ['"""a 5" screen"""'],
    ['"""a \\"""b"""'],
    ['"""\nshe said "no\n[other]""""'],
    ["'''it's\n[other]'''''"],
    ['"""\\\nend \\\\"""'],
  ])('is found behind a text that has quotes in it: %s', value => {
    const before = `instructions = ${value}\n\n[mcp_servers.savepoint]\ncommand = "old"\n`
    expect(setToml(before, PATH, TABLE)).toBe(`instructions = ${value}\n\n${BLOCK}`)
    expect(removeToml(before, PATH)).toBe(`instructions = ${value}\n`)
  })

  it('is changed where it stands; keys of the user stay', () => {
    const before = `[mcp_servers.savepoint] # ours\ncommand = "old"\nstartup_timeout_sec = 20\n\n# next\n[x]\n`
    const text = setToml(before, PATH, TABLE)
    expect(text).toBe(`${BLOCK}startup_timeout_sec = 20\n\n# next\n[x]\n`)
    expect(removeToml(text, PATH)).toBe('\n# next\n[x]\n')
  })

  it.each([['[mcp_servers."savepoint"]'], ["[ mcp_servers . 'savepoint' ]"], ['["mcp_servers".savepoint]']])(
    'is known as %s',
    header => {
      expect(setToml(`${header}\ncommand = "x"\n`, PATH, TABLE)).toBe(BLOCK)
    },
  )

  it('is found behind values of several lines, and replaces those of its own', () => {
    const before =
      'matrix = [\n  ["a"],\n  ["mcp_servers"]\n]\n\n[mcp_servers.savepoint]\nargs = [\n  "x", # ]\n  "y",\n]\nenv = { A = "1" }\n'
    expect(setToml(before, PATH, TABLE)).toBe(
      `matrix = [\n  ["a"],\n  ["mcp_servers"]\n]\n\n${BLOCK}env = { A = "1" }\n`,
    )
  })

  it('goes with what belongs to it', () => {
    const text = `a = 1\n\n${BLOCK}\n[mcp_servers.savepoint.env]\nX = "1"\n\n[z]\n`
    expect(removeToml(text, PATH)).toBe('a = 1\n\n[z]\n')
  })

  it('goes into nothing, and into lines that end as on Windows', () => {
    expect(setToml('', PATH, TABLE)).toBe(BLOCK)
    expect(removeToml(BLOCK, PATH)).toBe('')
    const text = setToml('a = 1\r\n', PATH, TABLE)
    expect(text).toBe(`a = 1\r\n\r\n${BLOCK.replaceAll('\n', '\r\n')}`)
    expect(removeToml(text, PATH)).toBe('a = 1\r\n')
  })

  it('leaves the ends of lines as they are, whichever they are', () => {
    const before = 'a = 1\r\nb = """\nx\n"""\n'
    const block = BLOCK.replaceAll('\n', '\r\n')
    expect(setToml(before, PATH, TABLE)).toBe(`${before.trimEnd()}\r\n\r\n${block}`)
    expect(setToml(`[mcp_servers.savepoint]\ncommand = "x"\r\n[z]\n`, PATH, TABLE)).toBe(`${block}[z]\n`)
    expect(removeToml(`c = 1\n\n${block}\r\n[z]\n`, PATH)).toBe('c = 1\n\r\n[z]\n')
  })

  it('has keys in any quotes, and its name with escapes', () => {
    const before = `[mcp_servers."\\u0073avepoint"]\n'command' = "x"\n"args" = []\n`
    expect(setToml(before, PATH, TABLE)).toBe(BLOCK)
    expect(removeToml(before, PATH)).toBe('')
  })

  it.each(['"/a=b"', '"/app/[id]"', "'/a#]b=\"c'"])('keeps what is said of the directory %s', name => {
    const others = `[projects.${name}]\ntrust_level = "trusted"\n`
    expect(setToml(others, PATH, TABLE)).toBe(`${others}\n${BLOCK}`)
    expect(removeToml(`${others}\n${BLOCK}`, PATH)).toBe(others)
    expect(removeToml(`a = 1\n\n${BLOCK}\n${others}`, PATH)).toBe(`a = 1\n\n${others}`)
  })

  it('goes with what belongs to it, also where something else stands between', () => {
    const text = `${BLOCK}\n[z]\na = 1\n\n[mcp_servers.savepoint.env]\nX = "1"\n`
    expect(removeToml(text, PATH)).toBe('\n[z]\na = 1\n')
  })

  it.each(['[mcp_servers."\\U00000073avepoint"]', '[[mcp_servers]]'])('beside %s is refused', header => {
    expect(() => setToml(`${header}\ncommand = "x"\n`, PATH, TABLE)).toThrow(/cannot be edited here/)
  })

  it.each([
    'mcp_servers = { savepoint = { command = "x" } }',
    '[mcp_servers]\nsavepoint = { command = "x" }',
    'mcp_servers.savepoint = { command = "x" }',
  ])('in another form is refused: %s', text => {
    expect(() => setToml(`${text}\n`, PATH, TABLE)).toThrow(/cannot be edited here/)
  })

  it.each(['a = =', 'a', 'a =', '= 1', '[a', 'a = 1\n]', '{}'])('is not added to what is no TOML: %s', text => {
    expect(() => setToml(`${text}\n`, PATH, TABLE)).toThrow(/is no TOML$/)
  })

  it('is added after everything that TOML has', () => {
    const before = [
      '# comment',
      'a = 1 # comment',
      '"b = c".d-e = [ # comment',
      '  "x", # [y',
      '  { z = 1 },',
      ']',
      "'f' = '''",
      'no = = key',
      "'''",
      '-g = { h = "]" }',
      '  [ t . "u.v" ] # comment',
      'i=-inf',
      '[[w]]',
      '',
    ].join('\n')
    expect(setToml(before, PATH, TABLE)).toBe(`${before}\n${BLOCK}`)
  })

  it('beside [mcp_servers] with others is none', () => {
    const before = '[mcp_servers]\nother = { command = "x" }\n'
    expect(setToml(before, PATH, TABLE)).toBe(`${before}\n${BLOCK}`)
  })
})

it('names that need it are quoted', () => expect(headerOf(['a', 'b c'])).toBe('[a."b c"]'))
