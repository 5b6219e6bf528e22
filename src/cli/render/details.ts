import type { LogNode } from '../../index.ts'
import { formatAge, formatBytes, formatDelta, plural } from '../../model/format.ts'
import { type NativeUsage, type Snapshot, type Turn, UNREAD_ROOT } from '../../model/snapshot.ts'
import type { Style } from '../style.ts'
import { showText } from '../text.ts'
import { deltaText, localTime, marksOf, skippedText } from './snapshot.ts'

const turnText = ({ agent, session, number, event, tool }: Turn): string =>
  `${number} of session ${session} of ${agent}, ${event}${tool === undefined ? '' : ` ${tool}`}`

function keptText({ where, bytes, isGone }: NativeUsage, isUnread: boolean): string {
  if (isGone) return `${isUnread ? 'nowhere' : 'by the store alone'}: somebody has removed ${showText(where)}`
  return `${showText(where)}${bytes === undefined ? '' : `, ${formatBytes(bytes)} of its own`}`
}

/** The head of `show`: one fact per line. */
export function snapshotDetails(
  snapshot: Snapshot,
  node: LogNode | undefined,
  kept: NativeUsage | undefined,
  now: number,
  style: Style,
): string {
  const isRead = snapshot.root !== UNREAD_ROOT
  const facts: [name: string, value: string | undefined][] = [
    ['type', snapshot.type],
    ['label', snapshot.label === undefined ? undefined : showText(snapshot.label)],
    ['command', snapshot.command === undefined ? undefined : showText(snapshot.command)],
    ['run', snapshot.run],
    ['turn', snapshot.turn && turnText(snapshot.turn)],
    ['created', `${localTime(snapshot.createdAt)} (${formatAge(now - snapshot.createdAt)})`],
    ['parent', snapshot.parent ?? 'none'],
    ['content', isRead ? `${plural('file', snapshot.files)}, ${formatBytes(snapshot.bytes)}` : 'not read yet'],
    ['stored', `${formatDelta(snapshot.sizeDelta)} (backend: ${snapshot.backend})`],
    ['kept', kept && keptText(kept, !isRead)],
    [
      'damage',
      snapshot.damage &&
        `its archive ${snapshot.damage}; the store has all of it, and \`${style.command('verify --repair')}\` writes it again`,
    ],
    ['changes', snapshot.parent === undefined ? 'first snapshot' : deltaText(snapshot)],
    ['root', isRead ? Buffer.from(snapshot.root, 'latin1').toString('hex') : undefined],
    ['coverage', snapshot.runOnly ? 'run-only: what others changed meanwhile was not looked for' : undefined],
    ['note', snapshot.unsettled ? 'unsettled: files kept changing while it was taken' : undefined],
    ['deleted', snapshot.deletedAt === undefined ? undefined : formatAge(now - snapshot.deletedAt)],
  ]
  const heading = `${style.bold(snapshot.id)} ${node ? marksOf(node, style) : ''}`.trimEnd()
  const lines = facts.filter(([, value]) => value !== undefined).map(([name, value]) => `  ${name.padEnd(8)} ${value}`)
  return `${[heading, ...lines].join('\n')}\n${skippedText(snapshot.skipped, snapshot.skippedCount, style)}`
}
