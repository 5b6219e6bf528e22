/** What an agent tells its hooks, and what becomes of it: snapshots of type `turn` that say whose turn it was. */
import type { Snapshot, Turn } from '../../model/snapshot.ts'

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

const AGENT = 'claude'

/** Turns are counted by the snapshots that they left: a prompt begins the next one. */
export function turnOf({ kind, session, tool }: HookEvent, snapshots: readonly Pick<Snapshot, 'turn'>[]): Turn {
  const numbers = snapshots.map(({ turn }) => (turn?.agent === AGENT && turn.session === session ? turn.number : 0))
  const last = Math.max(0, ...numbers)
  const number = kind === 'UserPromptSubmit' ? last + 1 : Math.max(1, last)
  return { agent: AGENT, session, number, event: kind, tool }
}

/** "claude 6f1c… turn 3: Edit". */
export function labelOf({ agent, session, number, event, tool }: Turn): string {
  const what = { PreToolUse: `before ${tool}`, PostToolUse: tool, Stop: 'end' }[event]
  return `${agent} ${session} turn ${number}${what === undefined ? '' : `: ${what}`}`
}
