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
  const hooks = [{ type: 'command', command: quoteCommand(command) }]
  const take = (text: string): string =>
    Object.keys(events).reduce((rest, event) => removeFromJson(rest, ['hooks', event], isOurs), text)
  return {
    file,
    put: text =>
      Object.entries(events).reduce((rest, [event, options]) => {
        const wanted = { ...options, hooks }
        const path = ['hooks', event]
        const present = getJson(rest, path)
        if (Array.isArray(present) && present.some(group => isDeepStrictEqual(group, wanted))) return rest
        return addToJson(removeFromJson(rest, path, isOurs), path, wanted)
      }, text),
    take,
  }
}

/** A group of hooks with nothing but ours in it, whatever the program was called then. */
function isOurs(group: unknown): boolean {
  const hooks = (group as { hooks?: unknown } | null)?.hooks
  if (!Array.isArray(hooks) || hooks.length === 0) return false
  return hooks.every(each => / hook claude( |$)/.test(String((each as { command?: unknown } | null)?.command)))
}
