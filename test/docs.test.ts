/** The documents say what the code does: generated pages are up to date, examples run, bytes and schemas are the real ones. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configKeys, defaultText, makeDocs, verbs } from '../scripts/make-docs.ts'
import { examplesOf } from '../src/cli/help.ts'
import { defaultConfig, keysOf } from '../src/config/config.ts'
import { errorCatalogue } from '../src/errors/errors.ts'
import { blankEntry, type Entry, unknownReasons } from '../src/model/entry.ts'
import { hashBytes } from '../src/model/id.ts'
import { operationKinds, snapshotTypes } from '../src/model/snapshot.ts'
import { ObjectIndex } from '../src/store/object-index.ts'
import { CODEC, encodeBlock, OBJECT } from '../src/store/pack-format.ts'
import { encodeRecipe } from '../src/store/recipe.ts'
import { encodeTree } from '../src/store/tree-codec.ts'
import { timelineSchema } from '../src/timeline/timeline-schema.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const README_LINES = 75

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'savepoint-docs-'))
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** The fenced blocks of one language. */
const blocks = (file: string, language: string): string[] =>
  [...read(file).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(match => match[1]!)

const documents = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.md'))
    .map(file => `docs/${file}`),
]

describe('generated pages', () => {
  const pages = makeDocs()

  it.each(Object.keys(pages))('%s is up to date (else: sh scripts/with-node.sh scripts/make-docs.ts)', file => {
    expect(read(file)).toBe(pages[file])
  })

  it('have every verb with an example of its own', () => {
    const missing = verbs().filter(
      verb =>
        !examplesOf(verb).some(
          line => line.startsWith(`savepoint ${verb.name()} `) || line === `savepoint ${verb.name()}`,
        ),
    )
    expect(missing.map(verb => verb.name())).toEqual([])
    for (const verb of verbs()) expect(pages['docs/cli.md']).toContain(`\n### ${verb.name()}\n`)
    expect(verbs().length).toBeGreaterThan(20)
  })

  it('have every error code with its exit code', () => {
    for (const [code, { exit }] of Object.entries(errorCatalogue))
      expect(pages['docs/errors.md']).toContain(`| \`${code}\` | ${exit} |`)
  })

  it('have every key of the configuration with its default', () => {
    const keys = configKeys()
    expect(keys.toSorted()).toEqual(keysOf(defaultConfig).toSorted())
    for (const key of keys) expect(pages['docs/config.md']).toContain(`| \`${key}\` | ${defaultText(key)} |`)
  })
})

describe('links', () => {
  it('lead to files that exist', () => {
    const broken = documents.flatMap(document =>
      [...read(document).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
        .map(match => match[1]!)
        .filter(link => !/^[a-z]+:/.test(link) && !existsSync(join(root, dirname(document), link)))
        .map(link => `${document}: ${link}`),
    )
    expect(broken).toEqual([])
  })

  it('reach every document from the README', () => {
    const reached = new Set(['README.md'])
    for (const document of reached) {
      for (const [, link] of read(document).matchAll(/\]\(([^)#\s]+\.md)[^)]*\)/g)) {
        reached.add(relative(root, join(root, dirname(document), link!)))
      }
    }
    expect(documents.filter(document => !reached.has(document))).toEqual([])
  })
})

describe('the README', () => {
  it('fits on a screen', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(README_LINES)
  })

  it('names only verbs that exist', () => {
    const known = new Set(verbs().flatMap(verb => [verb.name(), ...verb.aliases()]))
    const named = [...read('README.md').matchAll(/(?:^\$ |`)(?:\.\/)?savepoint ([a-z]+)/gm)].map(match => match[1]!)
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter(verb => !known.has(verb))).toEqual([])
  })
})

describe('the example of the library', () => {
  it('runs and prints what the document says', () => {
    const [example] = blocks('docs/library.md', 'ts')
    const [output] = blocks('docs/library.md', 'text')
    const file = join(scratch, 'example.mts')
    const entry = new URL('../src/index.ts', import.meta.url).href
    writeFileSync(file, example!.replace("from 'savepoint'", `from ${JSON.stringify(entry)}`))
    const result = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      env: { PATH: process.env.PATH, HOME: scratch, TMPDIR: scratch },
      encoding: 'utf8',
    })
    expect(result.stderr).toBe('')
    expect(result.stdout).toBe(output)
    expect(readdirSync(scratch).filter(name => /^(project|home)-/.test(name))).toEqual([])
  })
})

describe('docs/format.md', () => {
  const page = read('docs/format.md')
  const bytesOf = (language: string) => blocks('docs/format.md', language)[0]!.replace(/\s/g, '')
  const content = Buffer.from('hi\n')
  const id = hashBytes(content)

  it('has the real bytes of a tree, a recipe and a block', () => {
    const file: Entry = {
      ...blankEntry('a', 'file'),
      mode: 0o644,
      uid: 1000,
      gid: 1000,
      mtimeNs: 1_700_000_000_000_000_000n,
      size: content.length,
      content: id,
    }
    const excluded: Entry = { ...blankEntry('node_modules', 'unknown'), reason: 'excluded', found: 'dir' }
    expect(bytesOf('tree')).toBe(encodeTree([file, excluded]).toString('hex'))
    expect(bytesOf('recipe')).toBe(
      encodeRecipe([{ chunk: id, length: content.length }, { hole: 4096 }]).toString('hex'),
    )
    const block = encodeBlock(
      [{ id, kind: OBJECT.data, length: content.length }],
      content,
      CODEC.stored,
      content.length,
    )
    expect(bytesOf('block')).toBe(block.toString('hex'))
    expect(page).toContain(`(\`${encodeTree([]).toString('hex')}\`)`)
  })

  it('has the real schemas', () => {
    const normal = (sql: string) =>
      sql
        .replace(/IF NOT EXISTS /g, '')
        .replace(/\s+/g, ' ')
        .replace(/\( /g, '(')
        .replace(/ \)/g, ')')
        .trim()
    const [indexSql, timelineSql] = blocks('docs/format.md', 'sql').map(normal)
    expect(timelineSql).toBe(normal(timelineSchema))
    const file = join(scratch, 'index.sqlite')
    new ObjectIndex(file).close()
    const database = new DatabaseSync(file)
    const rows = database
      .prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
      .all()
    database.close()
    expect(indexSql).toBe(rows.map(row => `${normal(row.sql as string)};`).join(' '))
  })

  it('has every reason, type and kind', () => {
    for (const [number, reason] of unknownReasons.entries()) expect(page).toContain(`| ${number} | ${reason} |`)
    for (const word of [...snapshotTypes, ...operationKinds]) expect(page).toContain(`\`${word}\``)
  })
})
