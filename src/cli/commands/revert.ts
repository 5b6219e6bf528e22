import type { Command } from 'commander'
import { asSavepointError } from '../../api/as-savepoint-error.ts'
import { orNull, restoreJson } from '../../api/json.ts'
import { SavepointError } from '../../errors/errors.ts'
import type { RestoreResult } from '../../index.ts'
import { quoteWord } from '../../model/shell-quote.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { isUndoable, restoreExitCode, restoreText, undoHint } from '../render/restore.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'

export function register(program: Command): void {
  define(program, {
    name: 'revert',
    group: 'back',
    summary: 'bring single files or directories back',
    description:
      'Brings each PATH back from a snapshot: the one named with --from, otherwise the newest that has it of HEAD and what ' +
      'HEAD descends from. A file that did not exist in the snapshot named with --from is removed. Everything else stays ' +
      'as it is. A PATH that no snapshot has does not stop the others; it is named, and the exit code is 3.',
    usage: 'PATH… [--from SNAP] [--dry-run]',
    examples: [
      ['revert src/app.ts', 'its last captured version'],
      ['revert src/app.ts --from good', 'its version in the snapshot tagged "good"'],
      ['revert config --dry-run', 'what would happen to a directory'],
    ],
    cancellable: true,
  })
    .argument('<paths...>', 'files or directories')
    .option('--from <snapshot>', 'the snapshot to take them from')
    .option('--dry-run', 'only show what would change')
    .action(
      handle<{ from?: string; dryRun?: boolean }>(async (context, { words, options }) => {
        const savepoint = await context.open({ withoutBrokenConfig: true, makeRoom: !options.dryRun })
        const outcomes = await revertEach(words, path =>
          savepoint.revert(path, { from: options.from, dryRun: options.dryRun }),
        )
        const results = outcomes.flatMap(({ result }) => result ?? [])
        const failure = failureOf(outcomes)
        if (results.length === 0) throw failure
        if (context.options.json) context.json(outcomes.map(outcomeJson))
        else if (!context.options.quiet) writeResults(context, outcomes, results, options.from === undefined)
        if (failure) throw failure
        return Math.max(...results.map(restoreExitCode))
      }),
    )
}

interface Outcome {
  path: string
  result?: RestoreResult
  error?: unknown
}

/** A path that no snapshot has does not stop the others; whatever else goes wrong is not about this path, and ends it. */
async function revertEach(paths: string[], revert: (path: string) => Promise<RestoreResult>): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  let stopped: unknown
  for (const path of paths) {
    try {
      outcomes.push(stopped === undefined ? { path, result: await revert(path) } : { path, error: stopped })
    } catch (error) {
      outcomes.push({ path, error })
      if (!/^path\./.test(asSavepointError(error).code)) stopped = error
    }
  }
  return outcomes
}

/** One error for everything that was not reverted; `incomplete` when something was. */
function failureOf(outcomes: Outcome[]): unknown {
  const failed = outcomes.filter(({ result }) => !result)
  const errors = [...new Set(failed.map(({ error }) => error))]
  // Being stopped and our own defects are reported as what they are.
  const sole = errors.find(error => ['cancelled', 'bug'].includes(asSavepointError(error).code))
  if (sole !== undefined || (errors.length <= 1 && failed.length === outcomes.length)) return sole ?? errors[0]
  if (errors.length === 0) return undefined
  const explained = errors.map(asSavepointError)
  const code = failed.length < outcomes.length ? 'incomplete' : explained[0]!.code
  return new SavepointError(code, explained.map(({ message }) => message).join('\n'), {
    hint: explained.flatMap(({ hint }) => hint ?? []).join('\n') || undefined,
    data: { failed: failed.map(({ path }) => path) },
    cause: errors[0],
  })
}

/** Of a path that could not be reverted: which, and why. */
function outcomeJson({ path, result, error }: Outcome) {
  if (result) return restoreJson(result)
  const { code, message, hint } = asSavepointError(error)
  return { path, error: { code, message, hint: orNull(hint) } }
}

/** `isLast`: nobody named a snapshot, it is the last version of each. */
function writeResults(context: Context, outcomes: Outcome[], results: RestoreResult[], isLast: boolean): void {
  const done = results.filter(isUndoable)
  for (const { path, result } of outcomes) {
    if (!result) continue
    const name = showText(path)
    // One hint for all, at the end.
    const undo = result === done.at(-1) ? undoHint(done, context.style) : ''
    const otherwise = isLast ? otherVersions(path, context.style) : undefined
    const text = { done: `Reverted ${name} to`, would: `Would revert ${name} to`, undo, otherwise }
    context.output.write(restoreText(result, text, context.style))
  }
}

/** After a run, the last captured version is what the run made of it. */
function otherVersions(path: string, style: Style): string {
  const word = quoteWord(showText(path.startsWith('-') ? `./${path}` : path))
  return `Its other versions: ${style.command(`history ${word}`)}\nTo bring one back: ${style.command(`revert ${word} --from SNAPSHOT`)}`
}
