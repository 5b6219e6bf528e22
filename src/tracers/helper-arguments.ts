/** What the helper program is told at its start (native/helper/main.c). */
import type { Raw } from '../model/raw-path.ts'
import type { TracedOptions } from './traced-options.ts'

/** Arguments are text, paths are not: every byte that is not plain is written as `%xx`. */
const spelled = (path: Raw): string =>
  path.replaceAll(/[^\w./-]/g, byte => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)

/** `eventsFd`: the descriptor on which it is to tell. */
export function helperArguments(options: TracedOptions, eventsFd: number): string[] {
  const { hold, inherited, watch, record } = options
  return [
    ...['--events', String(eventsFd), '--driver', options.driver],
    // For tests: as on a kernel that is older than this one.
    ...(options.env.SAVEPOINT_EXITS ? ['--exits', options.env.SAVEPOINT_EXITS] : []),
    ...(options.allowIoUring ? ['--allow-io-uring'] : []),
    ...options.protect.flatMap(directory => ['--protect', directory]),
    ...(inherited.ignoredSignals.length > 0 ? ['--ignore', inherited.ignoredSignals.join(',')] : []),
    ...(inherited.fileLimit === undefined ? [] : ['--file-limit', String(inherited.fileLimit)]),
    ...(options.spool === undefined ? [] : ['--spool', options.spool]),
    ...(options.holdsChanges ? ['--hold-changes'] : []),
    ...(hold ? ['--hold', hold.names.join(','), '--hold-ms', String(hold.maxMs)] : []),
    ...(watch ? ['--watch', spelled(watch.path)] : []),
    ...(watch?.ignored ?? []).flatMap(path => ['--watch-ignore', spelled(path)]),
    ...(record ? ['--record', record.looks ? 'all' : 'changes', '--exits', 'pidfd'] : []),
    ...(record?.ignored ?? []).flatMap(path => ['--record-ignore', spelled(path)]),
    ...['--', ...options.command],
  ]
}
