/** `bundle show`: what a bundle holds, as a list, as a tree, or for programs. */

import { changeLetters } from '../../model/change-letters.ts'
import { formatBytes, formatDuration, plural } from '../../model/format.ts'
import { type Raw, showPath } from '../../model/raw-path.ts'
import { quoteCommand } from '../../model/shell-quote.ts'
import { type Bundle, type BundleFile, isChanged, kindOf } from '../../record/index.ts'
import type { Context } from '../context.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'

export interface ShowOptions {
  tree?: boolean
  changed?: boolean
}

export async function showBundle(context: Context, bundle: Bundle, options: ShowOptions): Promise<void> {
  const files = options.changed ? bundle.files.filter(isChanged) : bundle.files
  if (context.options.json) {
    context.json({
      bundle: bundle.directory,
      ...bundle.manifest,
      files: files.map(({ raw, ...file }) => ({
        ...file,
        change: isChanged(file) ? kindOf(file) : null,
      })),
    })
    return
  }
  if (context.options.quiet) {
    context.lines(files.map(({ raw }) => showPath(raw)))
    return
  }
  const { style } = context
  await context.paged(output => {
    for (const line of headLines(bundle, style)) output.write(`${line}\n`)
    const lines = options.tree
      ? treeLines(files, style)
      : files.map(file => `${mark(file, style)} ${showPath(file.raw)}${note(file, style)}`)
    if (lines.length > 0) output.write(`\n${lines.join('\n')}\n`)
  })
}

function headLines({ manifest, files, hasBlobs, directory }: Bundle, style: Style): string[] {
  const changed = files.filter(isChanged)
  const count = (kind: string) => changed.filter(file => kindOf(file) === kind).length
  const counts = `${count('added')} added, ${count('modified')} modified, ${count('deleted')} deleted`
  const others = changed.length - count('added') - count('modified') - count('deleted')
  const end = manifest.signal ?? (manifest.exit_status === null ? 'not known' : `exit ${manifest.exit_status}`)
  return [
    style.bold(showText(quoteCommand(manifest.command))),
    `  ended     ${end}, after ${formatDuration(manifest.duration_ms)}`,
    `  started   ${manifest.started_at} in ${showText(manifest.start_cwd)}, by user ${manifest.uid}`,
    `  paths     ${plural('path', files.length)}: ${counts}${others > 0 ? `, ${others} otherwise changed` : ''}`,
    ...(hasBlobs ? [] : ['  contents  none']),
    ...manifest.git_repositories.map(({ root, head }) => `  git       ${showText(root)} at ${head ?? 'no commit'}`),
    ...(manifest.recorded === 'changes' ? ['  recorded  only what it changed'] : []),
    ...(manifest.skipped_count > 0
      ? [`  skipped   ${plural('content', manifest.skipped_count)}: --json says which and why`]
      : []),
    ...(manifest.complete ? [] : [style.red(`  INCOMPLETE: ${showText(manifest.incomplete_because.join('; '))}`)]),
    style.dim(
      `  Not in it: what lies in .git, and what ignore.json names. ${style.command(`bundle diff ${directory}`)} shows the changes`,
    ),
  ]
}

function mark(file: BundleFile, style: Style): string {
  if (!isChanged(file)) return ' '
  const kind = kindOf(file)
  const paint = kind === 'added' ? style.green : kind === 'deleted' ? style.red : style.yellow
  return paint(changeLetters[kind])
}

function note({ operations, after, before, git }: BundleFile, style: Style): string {
  const size = (after.exists ? after : before).size
  const parts = [
    operations.join(','),
    ...(size === undefined ? [] : [formatBytes(size)]),
    ...(git.in_repo && git.oid !== undefined && before.blob === undefined && before.sha256 !== undefined
      ? ['in git']
      : []),
    ...(!before.exists && !after.exists ? ['not there'] : []),
  ]
  return style.dim(` (${parts.join('; ')})`)
}

/** Directories that hold one thing only stand in the line of that. */
function treeLines(files: readonly BundleFile[], style: Style): string[] {
  interface Node {
    file?: BundleFile
    children: Map<Raw, Node>
  }
  const root: Node = { children: new Map() }
  for (const file of files) {
    let node = root
    for (const name of file.raw.split('/').filter(Boolean)) {
      if (!node.children.has(name)) node.children.set(name, { children: new Map() })
      node = node.children.get(name)!
    }
    node.file = file
  }
  const lines: string[] = []
  const add = (name: Raw, node: Node, indent: string): void => {
    let [joined, at] = [name, node]
    while (!at.file && at.children.size === 1) {
      const [[next, child]] = [...at.children] as [[Raw, Node]]
      joined = `${joined === '/' ? '' : joined}/${next}`
      at = child
    }
    const slash = at.children.size > 0 && joined !== '/' ? '/' : ''
    lines.push(
      `${at.file ? mark(at.file, style) : ' '} ${indent}${showPath(joined)}${slash}${at.file ? note(at.file, style) : ''}`,
    )
    for (const [below, child] of at.children) add(below, child, `${indent}  `)
  }
  if (files.length > 0) add('/', root, '')
  return lines
}
