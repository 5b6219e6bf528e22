import { describe, expect, it } from 'vitest'
import type { Entry } from '../model/entry.ts'
import type { ContentChange } from './content-change.ts'
import { fixtureEntry } from './fixture-entry.ts'
import { type UnifiedOptions, unifiedDiff, unifiedDiffBytes } from './unified.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const show = (change: ContentChange, options?: UnifiedOptions) => unifiedDiffBytes(change, options).toString('latin1')
const edit = (before: string, after: string, fields: Partial<Entry> = {}): ContentChange => ({
  path: 'x',
  before: fixtureEntry({ size: before.length, content: `id of ${before}` }),
  after: fixtureEntry({ size: after.length, content: `id of ${after}`, ...fields }),
  beforeContent: bytes(before),
  afterContent: bytes(after),
})

describe('unifiedDiff', () => {
  it('shows nothing when nothing differs', () => {
    expect(show(edit('a\n', 'a\n'))).toBe('')
  })

  it('marks a missing final line feed on either side', () => {
    expect(show(edit('a\nb', 'a\nb\n'))).toContain('@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n')
    expect(show(edit('a\nb', 'c\nb'))).toContain('-a\n+c\n b\n\\ No newline at end of file\n')
  })

  it('keeps every byte of the content in plain output', () => {
    const before = 'a\r\n\x1b[31m\xff\xfe\x01\n'
    expect(show(edit(before, ''))).toContain('@@ -1,2 +0,0 @@\n-a\r\n-\x1b[31m\xff\xfe\x01\n')
  })

  it('shows as much context as was asked for', () => {
    const lines = (middle: string) => `1\n2\n3\n4\n${middle}\n6\n7\n8\n9\n`
    expect(show(edit(lines('5'), lines('x')), { context: 0 })).toMatch(/\n@@ -5 \+5 @@\n-5\n\+x\n$/)
    expect(show(edit(lines('5'), lines('x')), { context: 1 })).toMatch(/\n@@ -4,3 \+4,3 @@\n 4\n-5\n\+x\n 6\n$/)
    expect(show(edit(lines('5'), lines('x')), { context: 99 })).toContain('\n@@ -1,9 +1,9 @@\n 1\n')
    expect(show(edit('a\nb\n', 'a\nx\nb\n'), { context: 0 })).toMatch(/\n@@ -1,0 \+2 @@ a\n\+x\n$/)
  })

  it('colours as git does and cannot steer the terminal', () => {
    const change = edit(
      'def f\n1\n2\n3\nold\n',
      'def f\n1\n2\n3\n\x1b]0;title\x07\r\xc3\xa4\xc2\x9b\xff\xe2\x80\xae\t\x7f\n',
    )
    const [first, , , , range, , , , , ...rest] = show({ ...change, path: 'e\x1bvil' }, { colour: true }).split('\n')
    expect(first).toBe('\x1b[1mdiff --git "a/e\\033vil" "b/e\\033vil"\x1b[m')
    expect(range).toBe('\x1b[36m@@ -2,4 +2,4 @@\x1b[m def f')
    expect(rest).toEqual(['\x1b[32m+^[]0;title^G^M\xc3\xa4<U+009B><FF><U+202E>\t^?\x1b[m', ''])
    expect(show(change, { colour: true })).toContain('\n\x1b[31m-old\x1b[m\n')
  })

  it('never cuts a character of a long line in two', () => {
    const long = '\xe2\x82\xac'.repeat(50_000)
    expect(show(edit('', `${long}\n`), { colour: true })).toContain(`+${long}\x1b`)
  })

  it('names binary content and content that is not there, with sizes', () => {
    expect(show(edit('a\0', 'abc\n'))).toMatch(/\nBinary files a\/x and b\/x differ\nSize: 2 -> 4 bytes\n$/)
    const late = edit(`${'a'.repeat(8000)}\0\n`, 'b\n')
    expect(show(late)).toContain('\n--- a/x\n')
    const large = { path: 'x', after: fixtureEntry({ size: 5_000_000_000, content: 'id' }) }
    expect(show(large)).toBe(
      'diff --git a/x b/x\nnew file mode 100644\n' +
        'Files /dev/null and b/x (too large or not available, 0 -> 5000000000 bytes) differ\n',
    )
  })

  it('names one of the two modes of git for a file that goes: git apply warns about others', () => {
    const gone = (mode: number) =>
      show({ path: 'x', before: fixtureEntry({ mode, content: 'id' }), beforeContent: bytes('') })
    expect(gone(0o600)).toContain('\ndeleted file mode 100644\n')
    expect(gone(0o700)).toContain('\ndeleted file mode 100755\n')
  })

  it('needs no content for a rename or a new mode', () => {
    const entry = fixtureEntry({ content: 'id', size: 1 })
    expect(show({ path: 'new', from: 'old name', before: entry, after: { ...entry, mode: 0o4711 } })).toBe(
      'diff --git a/old name b/new\nold mode 100644\nnew mode 104711\n' +
        'similarity index 100%\nrename from old name\nrename to new\n',
    )
  })

  it('says in prose what a patch cannot express', () => {
    const dir = fixtureEntry({ kind: 'dir', mode: 0o755 })
    expect(show({ path: 'd', after: dir })).toBe('Directory d added (mode 755)\n')
    expect(show({ path: 'd\n', before: dir })).toBe('Directory "d\\n" deleted\n')
    expect(show({ path: 'd', before: dir, after: { ...dir, mode: 0o700, uid: 0 } })).toBe(
      'Directory d: mode 755 -> 700, owner 1000:1000 -> 0:1000\n',
    )
    expect(show(edit('a', 'a', { mtimeNs: 2n }))).toBe('File x: modification time changed\n')
    expect(show(edit('a', 'a', { xattrs: bytes('u') }))).toBe('File x: extended attributes changed\n')
    const unknown = fixtureEntry({ kind: 'unknown', reason: 'too-large' })
    expect(show({ path: 'u', before: dir, after: unknown })).toBe(
      'Directory u deleted\nPath that is not captured u now there (too-large)\n',
    )
  })

  it('comes in chunks of bounded size', () => {
    const chunks = [...unifiedDiff(edit('', 'some line\n'.repeat(100_000)))]
    expect(chunks.length).toBeGreaterThan(10)
    expect(Math.max(...chunks.map(chunk => chunk.length))).toBeLessThan(200_000)
  })
})
