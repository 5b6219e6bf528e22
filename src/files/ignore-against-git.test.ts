/** The same questions to git and to the rules, on random patterns and trees. */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { joinRaw, type Raw } from '../model/raw-path.ts'
import { TestTree, walkTarget } from './git-test-tree.ts'
import { parseIgnoreFile } from './ignore-list.ts'

const trees: TestTree[] = []
const newTree = (name?: Raw) => {
  const tree = new TestTree(name)
  trees.push(tree)
  return tree
}
afterAll(() => {
  for (const tree of trees) tree.remove()
})

const piece = fc.constantFrom(
  ...['a', 'b', 'c', 'ab', '.', ' ', '\t', '!', '#', '\xe9', '\xff', '{a,b}', '+', '$', 'a.b', '\r'],
  ...['/', '*', '**', '***', '?', '/**', '**/', '/**/', '*/', '*.', '\\/', '\\*', '\\a', '\\\\', '\\ ', '\\'],
  ...[
    '[ab]',
    '[!a]',
    '[^b]',
    '[a-b]',
    '[c-a]',
    '[a-]',
    '[]a]',
    '[!]a]',
    '[a/b]',
    '[',
    '[\\]]',
    '[b-\\c]',
    '[\xe0-\xff]',
  ],
  ...['[[:alpha:]]', '[![:alpha:]]', '[[:punct:]]', '[[:space:]a]', '[[:x:]]', '[[:a]', '[[:]'],
)
const pattern = fc
  .tuple(
    fc.constantFrom('', '', '', '!', '/', '\\!', '\\#', '#'),
    fc.array(piece, { minLength: 1, maxLength: 6 }),
    fc.constantFrom('', '', '/', ' '),
  )
  .map(([start, pieces, end]) => start + pieces.join('') + end)
const name = fc.constantFrom(
  ...['a', 'b', 'c', 'ab', 'ba', 'abc', 'aa', '.a', 'a.b', '{a,b}', '[', ']', '*', 'a*', '\\', '\\a', '-x', 'C:'],
  ...[' ', 'a ', ' a', '\xe9', '\xe9a', '\xff', '!a', '#a', '-', 'a\tb', '\n', 'a\nb', '..a', 'a..b', '...'],
)
const ignoreFile = fc
  .tuple(
    fc.constantFrom('', '\xef\xbb\xbf'),
    fc.array(pattern, { minLength: 1, maxLength: 5 }),
    fc.constantFrom('\n', '\n', '\r\n'),
  )
  .map(([bom, patterns, lineEnd]) => bom + patterns.join(lineEnd))

test('one ignore file decides about any path as git decides, and by the same line', () => {
  const tree = newTree()
  tree.initRepo()
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map(names => names.join('/'))
  let excluded = 0
  fc.assert(
    fc.property(ignoreFile, fc.uniqueArray(path, { minLength: 60, maxLength: 60 }), (content, paths) => {
      tree.write('.gitignore', content)
      const list = parseIgnoreFile(Buffer.from(content, 'latin1'))
      const ours = paths.map(asked => {
        const names = asked.split('/')
        const found = names.map((last, at) => {
          const dir = at === 0 ? '' : `${names.slice(0, at).join('/')}/`
          return list.find(last, at < names.length - 1, dir, at + 1)
        })
        return found.slice(0, -1).find(parent => parent && !parent.negative) ?? found.at(-1)
      })
      const answers = checkIgnore(tree, paths)
      excluded += ours.filter(decisive => decisive && !decisive.negative).length
      expect(ours.map(decisive => decisive?.line)).toEqual(paths.map(asked => answers.get(asked)?.line))
    }),
    { numRuns: 250 },
  )
  expect(excluded).toBeGreaterThan(200)
})

test('every byte is in the same character classes', () => {
  const tree = newTree()
  tree.initRepo()
  const names = [
    'alnum',
    'alpha',
    'blank',
    'cntrl',
    'digit',
    'graph',
    'lower',
    'print',
    'punct',
    'space',
    'upper',
    'xdigit',
  ]
  const paths = Array.from({ length: 255 }, (_, i) => `x${String.fromCharCode(i + 1)}`).filter(path => path !== 'x/')
  for (const positive of names.flatMap(name => [`x[[:${name}:]]`, `x[![:${name}:]]`])) {
    tree.write('.gitignore', positive)
    const list = parseIgnoreFile(Buffer.from(positive))
    const answers = checkIgnore(tree, paths)
    const ours = paths.filter(path => list.find(path, false, '', 1) !== undefined)
    expect(ours, positive).toEqual(paths.filter(path => answers.get(path)?.line !== undefined))
  }
})

interface Leaf {
  dir: Raw[]
  name: Raw
  tracked: boolean
}
const leaf: fc.Arbitrary<Leaf> = fc.record({
  dir: fc.array(name, { maxLength: 3 }),
  name,
  tracked: fc.boolean(),
})
const smallPattern = fc.oneof(
  pattern,
  name,
  fc.tuple(name, fc.constantFrom('/', '/*', '/**')).map(parts => parts.join('')),
)
const rules = fc.array(smallPattern, { minLength: 1, maxLength: 4 }).map(patterns => `${patterns.join('\n')}\n`)

test('whole trees with nested ignore files and tracked paths give the files that git gives', async () => {
  let files = 0
  let excludedAtAll = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(leaf, { minLength: 5, maxLength: 25 }),
      fc.array(fc.tuple(fc.nat(), rules), { minLength: 1, maxLength: 4 }),
      fc.option(rules),
      fc.option(rules),
      fc.boolean(),
      async (leaves, ignoreFiles, info, global, keepIndex) => {
        const tree = new TestTree()
        try {
          const placed = place(tree, leaves)
          for (const [seed, content] of ignoreFiles) {
            const { dir } = leaves[seed % leaves.length]!
            const at = dir.slice(0, seed % (dir.length + 1)).join('/')
            if (placed.dirs.has(at)) tree.write(joinRaw(at, '.gitignore'), content)
          }
          tree.initRepo()
          if (info !== null) tree.write('.git/info/exclude', info)
          if (global !== null) tree.write('../.config/git/ignore', global)
          if (keepIndex) tree.addForced(placed.tracked)
          const expected = listFiles(tree)
          const { captured, excluded, warnings } = await walkTarget(tree)
          expect(warnings).toEqual([])
          expect(captured).toEqual(expected)
          files += captured.length
          excludedAtAll += excluded.size
        } finally {
          tree.remove()
        }
      },
    ),
    { numRuns: 120 },
  )
  expect(files).toBeGreaterThan(100)
  expect(excludedAtAll).toBeGreaterThan(30)
}, 30_000)

test('a target below the root of a repository gives the files that git gives there', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(leaf, { minLength: 5, maxLength: 20 }),
      fc.tuple(rules, fc.option(rules), fc.option(rules), fc.option(rules)),
      async (leaves, [top, middle, own, info]) => {
        const tree = new TestTree()
        try {
          const placed = place(tree, leaves, 'a/b')
          tree.initRepo()
          // Only what is below a/b is asked about, so the way there must not be excluded itself.
          tree.write('.gitignore', `${top}!/a/\n`)
          if (middle !== null) tree.write('a/.gitignore', `${middle}!/b/\n`)
          else tree.write('a/.gitignore', '!/b/\n')
          if (own !== null && !placed.dirs.has('a/b/.gitignore')) tree.write('a/b/.gitignore', own)
          if (info !== null) tree.write('.git/info/exclude', info)
          tree.addForced(placed.tracked)
          const { captured } = await walkTarget(tree, { target: 'a/b' })
          expect(captured).toEqual(listFiles(tree, 'a/b'))
        } finally {
          tree.remove()
        }
      },
    ),
    { numRuns: 60 },
  )
}, 30_000)

/** Writes the leaves that fit beside each other. */
function place(tree: TestTree, leaves: Leaf[], below: Raw = '') {
  const dirs = new Set<Raw>([below])
  const files = new Set<Raw>()
  const tracked: Raw[] = []
  for (const { dir, name, tracked: isTracked } of leaves) {
    const ways = dir.map((_, at) => joinRaw(below, dir.slice(0, at + 1).join('/')))
    const path = joinRaw(below, [...dir, name].join('/'))
    if (dirs.has(path) || files.has(path) || ways.some(way => files.has(way))) continue
    for (const way of ways) dirs.add(way)
    files.add(path)
    tree.write(path, '')
    if (isTracked) tracked.push(path)
  }
  return { dirs, tracked }
}

function listFiles(tree: TestTree, path: Raw = ''): Raw[] {
  const listed = tree.git(['ls-files', '-z', '--cached', '--others', '--exclude-standard'], '', path).split('\0')
  return listed.filter(file => file !== '').sort()
}

function checkIgnore(tree: TestTree, paths: Raw[]): Map<Raw, { line: number | undefined }> {
  let answer: Raw
  try {
    answer = tree.git(['check-ignore', '--no-index', '-z', '-v', '-n', '--stdin'], `${paths.join('\0')}\0`)
  } catch (error) {
    // Exit code 1 says that nothing is ignored.
    const { status, stdout } = error as { status: number; stdout: Buffer }
    if (status !== 1) throw error
    answer = stdout.toString('latin1')
  }
  const fields = answer.split('\0')
  const answers = new Map<Raw, { line: number | undefined }>()
  for (let i = 0; i + 3 < fields.length; i += 4) {
    answers.set(fields[i + 3]!, { line: fields[i + 1] === '' ? undefined : Number(fields[i + 1]) })
  }
  return answers
}
