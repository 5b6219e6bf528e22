import { lstatSync } from 'node:fs'
import type { Command } from 'commander'
import { diffJson } from '../../api/json.ts'
import { SavepointError } from '../../errors/errors.ts'
import type { Savepoint } from '../../index.ts'
import { type Call, define, handle } from '../define.ts'
import { notNegative } from '../number-option.ts'
import { wrongUsage } from '../usage.ts'

interface Options {
  stat?: boolean
  nameOnly?: boolean
  nameStatus?: boolean
  unified: number
}

export function register(program: Command): void {
  define(program, {
    name: 'diff',
    group: 'look',
    summary: 'compare the live files or any two snapshots',
    description:
      'Compares two states: without a name HEAD with the live files, with A that snapshot with the live files, with A ' +
      'and B those two. With a run, the state before it with the one after it, without what others did meanwhile as far as its trace tells, or with the live files while it goes on. The output is a patch that `git apply` and `patch -p1` read; binary files, and what is too large, ' +
      'it only names, and `git apply` refuses it then, unless they are left out with --exclude=PATH. Renames are found ' +
      'by content.',
    usage: '[A [B]] [--stat | --name-only] [-- PATH…]',
    examples: [
      ['diff', 'what changed since HEAD'],
      ['diff snap_k3m9x2ab', 'what changed since that snapshot'],
      ['diff run_k3m9x2ab', 'what that run changed'],
      ['diff good HEAD --stat', 'between a tag and HEAD, lines counted'],
      ['diff good -- src', 'only below src'],
    ],
  })
    .argument('[words...]', 'A, B and paths')
    .option('--stat', 'count changed lines per file')
    .option('--name-only', 'only the names of changed files')
    .option('--name-status', 'names, each with what happened to it')
    .option('-U, --unified <n>', 'unchanged lines around a change', notNegative, 3)
    .action(
      handle<Options>(async (context, call) => {
        const savepoint = await context.look()
        const { refs, paths } = wordsOf(savepoint, call)
        const { forPeople, linesOf, namesBytes, statText, withRenames, writeUnified } = await import(
          '../render/diff.ts'
        )
        const { changeLine } = await import('../render/changes.ts')
        const { options } = call
        const whole = await savepoint.diff({ from: refs[0], to: refs[1], paths })
        if (context.options.json) {
          const joined = withRenames(whole)
          return context.json(diffJson(joined, options.stat ? linesOf(joined) : undefined))
        }
        const diff = forPeople(
          context,
          whole,
          paths.some(path => /(^|\/)\.git(\/|$)/.test(path)),
        )
        if (whole.changes.length === 0) {
          context.notice(`no difference between ${diff.from} and ${diff.to}`)
          return
        }
        const { style } = context
        await context.paged(async output => {
          if (options.nameOnly) output.write(namesBytes(diff.changes))
          else if (options.nameStatus)
            output.write(diff.changes.map(change => `${changeLine(change, style)}\n`).join(''))
          else if (options.stat) output.write(statText(diff, context.width, style.on))
          else await writeUnified(diff, output, options.unified, style.on)
        })
      }),
    )
}

/** Before `--` are snapshots; a word there that names none but is a file starts the paths, as it does for git. */
function wordsOf(
  savepoint: Savepoint,
  { before, after, hasDashes }: Call<unknown>,
): { refs: string[]; paths: string[] } {
  const refs = [...before]
  const paths = [...after]
  if (!hasDashes) {
    const first = refs.findIndex((word, i) => i >= 2 || (!isSnapshot(savepoint, word) && isFile(word)))
    if (first >= 0 && isFile(refs[first]!)) paths.unshift(...refs.splice(first))
  }
  if (refs.length > 2) throw wrongUsage('diff', `"${refs[2]}" is one snapshot too many`, '-- before paths')
  return { refs, paths }
}

function isSnapshot(savepoint: Savepoint, word: string): boolean {
  try {
    savepoint.find(word)
    return true
  } catch (error) {
    return !(error instanceof SavepointError && error.code === 'snapshot.unknown')
  }
}

function isFile(word: string): boolean {
  try {
    lstatSync(word)
    return true
  } catch {
    return false
  }
}
