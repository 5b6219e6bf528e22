import { expect, it, test } from 'vitest'
import { quoteCommand } from '../model/shell-quote.ts'
import { createStyle, wantsColour } from './style.ts'
import { displayWidth, shorten, shortenPath, showText } from './text.ts'

test.each([
  ['plain', 'plain'],
  ['a\nb\tc', 'a\\nb\\tc'],
  ['\x1b[31mred\x9b', '\\x1b[31mred\\x9b'],
  ['a\u202eb', 'a\\u202eb'],
  ['q\udcff', 'q\\xff'],
  ['C:\\dir é 🙂', 'C:\\dir é 🙂'],
])('%j is shown as %j', (text, shown) => expect(showText(text)).toBe(shown))

test.each([
  ['abc', 3],
  ['日本', 4],
  ['🙂', 2],
  ['e\u0301', 1],
  ['\x1b[1mab\x1b[m', 2],
])('%j takes %d columns', (text, width) => expect(displayWidth(text)).toBe(width))

it('quotes words as a shell reads them', () => {
  expect(quoteCommand(['sh', '-c', "echo 'a b'", '', 'x=1'])).toBe("sh -c 'echo '\\''a b'\\''' '' x=1")
})

it('shortens with an ellipsis', () => {
  expect(shorten('abcdef', 6)).toBe('abcdef')
  expect(shorten('abcdefg', 6)).toBe('abcde…')
})

it('shortens a path only beyond what is one', () => {
  const path = 'd/'.repeat(2046)
  expect(shortenPath(`${path}file`)).toBe(`${path.slice(0, 100)}…${path.slice(-96)}file`)
  expect(shortenPath(`${path}end`)).toBe(`${path}end`)
})

test.each([
  [{ isTTY: true }, {}, true, true],
  [{ isTTY: false }, {}, true, false],
  [{ isTTY: true }, {}, false, false],
  [{ isTTY: true }, { NO_COLOR: '1' }, true, false],
  [{ isTTY: true }, { NO_COLOR: '' }, true, true],
  [{ isTTY: true }, { TERM: 'dumb' }, true, false],
  [{ isTTY: false }, { FORCE_COLOR: '1' }, true, true],
  [{ isTTY: true }, { FORCE_COLOR: '0' }, true, false],
  [{ isTTY: false }, { FORCE_COLOR: '1', NO_COLOR: '1' }, true, false],
])('colours on %j with %j, allowed %s: %s', (stream, env, allowed, wanted) => {
  expect(wantsColour(stream, env, allowed)).toBe(wanted)
})

test.each([
  ['', 'src/a', 'src/a'],
  ['', '', '.'],
  ['src', 'src/a', 'a'],
  ['src', 'src', '.'],
  ['src/deep', 'src/a', '../a'],
  ['src', 'srcs/a', '../srcs/a'],
  ['src', '', '..'],
  ['', 'caf\xc3\xa9/\xff', 'café/\\xff'],
])('from %j the path %j is written %j', (base, path, shown) => expect(createStyle(false, base).path(path)).toBe(shown))
