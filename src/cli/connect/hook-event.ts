/** What an agent tells its hooks, and what becomes of it: snapshots of type `turn`, whose labels say whose turn it was. */
import type { Snapshot } from '../../model/snapshot.ts'

export interface HookEvent {
  kind: 'UserPromptSubmit' | 'PreToolUse' | 'PostToolUse' | 'Stop'
  session: string
  cwd: string | undefined
  tool: string | undefined
}

const kinds: readonly string[] = ['UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop'] satisfies HookEvent['kind'][]

/** undefined for an event that means nothing to us: agents get new ones. Throws a SyntaxError when it is none at all. */
export function parseHookEvent(text: string): HookEvent | undefined {
  const data = JSON.parse(text) as Record<string, unknown> | null
  if (typeof data !== 'object' || data === null || typeof data.hook_event_name !== 'string')
    throw new SyntaxError('it has no hook_event_name')
  if (!kinds.includes(data.hook_event_name)) return undefined
  return {
    kind: data.hook_event_name as HookEvent['kind'],
    session: word(data.session_id) ?? 'unknown',
    cwd: typeof data.cwd === 'string' && data.cwd.startsWith('/') ? data.cwd : undefined,
    tool: word(data.tool_name),
  }
}

/** It becomes part of a label, whatever it is. */
const word = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.replace(/[^\w.:-]/g, '_').slice(0, 64) : undefined

/** "claude 6f1c… turn 3: Edit". */
export function labelOf({ kind, session, tool }: HookEvent, turn: number): string {
  const what =
    kind === 'PreToolUse' ? `before ${tool}` : kind === 'PostToolUse' ? tool : kind === 'Stop' ? 'end' : undefined
  return `${prefixOf(session)}${turn}${what === undefined ? '' : `: ${what}`}`
}

const prefixOf = (session: string): string => `claude ${session} turn `

/** Turns are counted by the snapshots that they left: a prompt begins the next one. */
export function turnOf({ kind, session }: HookEvent, snapshots: readonly Pick<Snapshot, 'type' | 'label'>[]): number {
  const prefix = prefixOf(session)
  const turns = snapshots.map(({ type, label }) =>
    type === 'turn' && label?.startsWith(prefix) ? Number.parseInt(label.slice(prefix.length), 10) : 0,
  )
  const last = Math.max(0, ...turns)
  return kind === 'UserPromptSubmit' ? last + 1 : Math.max(1, last)
}
