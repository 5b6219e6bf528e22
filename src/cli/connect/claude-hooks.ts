/** Our hooks in the settings of Claude Code, beside those of others. */
import { isDeepStrictEqual } from 'node:util'
import { quoteCommand } from '../../model/shell-quote.ts'
import { addToJson, getJson, removeFromJson } from './jsonc-edit.ts'
import type { Place } from './place.ts'

/** Tools that change files; others are not worth a process. */
const MATCHER = 'Bash|Edit|MultiEdit|Write|NotebookEdit'
const events: Record<string, { matcher?: string }> = {
  UserPromptSubmit: {},
  PreToolUse: { matcher: MATCHER },
  PostToolUse: { matcher: MATCHER },
  Stop: {},
}

export function claudeHooks(file: string, command: string[]): Place {
  const hook = { type: 'command', command: quoteCommand(command) }
  const take = (text: string): string =>
    Object.keys(events).reduce((rest, event) => withoutOurs(rest, ['hooks', event]), text)
  return {
    file,
    put: text =>
      Object.entries(events).reduce((rest, [event, options]) => {
        const path = ['hooks', event]
        const groups = getJson(rest, path)
        if (Array.isArray(groups) && groups.some(group => hasHook(group, options.matcher, hook))) return rest
        return addToJson(withoutOurs(rest, path), path, { ...options, hooks: [hook] })
      }, text),
    take,
    hasOurs: text => take(text) !== text,
  }
}

/** In a group of its own, or in one that the user made for it and others. */
const hasHook = (group: unknown, matcher: string | undefined, hook: object): boolean =>
  (group as { matcher?: unknown } | null)?.matcher === matcher &&
  hooksOf(group).some(each => isDeepStrictEqual(each, hook))

/** Groups with nothing but ours in them go; of one that has others, too, only our hook does. */
function withoutOurs(text: string, path: readonly string[]): string {
  const rest = removeFromJson(text, path, group => hooksOf(group).length > 0 && hooksOf(group).every(isOurs))
  const shared = getJson(rest, path)
  if (!Array.isArray(shared)) return rest
  return shared.reduce<string>((left, _, index) => removeFromJson(left, [...path, index, 'hooks'], isOurs), rest)
}

function hooksOf(group: unknown): unknown[] {
  const hooks = (group as { hooks?: unknown } | null)?.hooks
  return Array.isArray(hooks) ? hooks : []
}

/** Wherever the program was then: what commandFor writes. Other programs may have hooks for Claude, too. */
const isOurs = (hook: unknown): boolean =>
  /(?:^|\/)(?:savepoint|cli\.js|main\.ts)'? hook claude(?: |$)/.test(
    String((hook as { command?: unknown } | null)?.command),
  )
