import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { nearest } from '../../model/suggest.ts'
import type { Agent, Scope } from '../connect/agents.ts'
import type { SettingsEdit } from '../connect/edit-settings.ts'
import type { Context } from '../context.ts'
import { define, handle } from '../define.ts'
import { wrongUsage } from '../usage.ts'

interface Options {
  print?: boolean
  remove?: boolean
  scope?: Scope
}

const names = ['claude', 'codex', 'gemini', 'cursor', 'opencode']

export function register(program: Command): void {
  define(program, {
    name: 'connect',
    group: 'more',
    summary: 'let an agent use savepoint by itself',
    description:
      'Registers `savepoint mcp` in the settings of an agent, so that it can take, compare and bring back snapshots by itself; of Claude ' +
      'Code also `savepoint hook claude`, so that each turn leaves a snapshot. ' +
      'Everything else in them stays as it is, comments included; what was there before is kept beside the file. To say it again changes ' +
      'nothing. --remove takes the entry away.',
    usage: `${names.join('|')} [--print | --remove] [--scope project|user]`,
    examples: [
      ['connect claude', 'in .mcp.json and .claude/ of this directory'],
      ['connect claude --scope user', 'in ~/.claude.json and ~/.claude/, for all directories'],
      ['connect codex --print', 'only show what would be written'],
      ['connect gemini --remove', 'take it away again'],
    ],
  })
    .argument('[words...]', 'the agent')
    .option('--print', 'only show what would be written')
    .option('--remove', 'take the entry away')
    .addOption(new Option('--scope <scope>', 'settings of this directory, or of the user').choices(['project', 'user']))
    .action(
      handle<Options>(async (context, { words, options }) => {
        const name = agentName(words)
        const { agents } = await import('../connect/agents.ts')
        const { carryOut, planEdit } = await import('../connect/edit-settings.ts')
        const { commandFor } = await import('../connect/launcher.ts')
        const { userHome } = await import('../connect/user-home.ts')
        const agent = agents[name]!
        const scope = options.scope ?? agent.scopes[0]
        const { home, target } = context.options
        const server = commandFor(['mcp'], process.env, home)
        const hook = commandFor(['hook', name], process.env, home)
        const project = resolve((target ?? '.').replace(/^dir:/, ''))
        const surroundings = { project, home: () => userHome(process.env), env: process.env, server, hook }
        // All are planned before the first is written.
        const edits = agent.places(scope, surroundings).map(place => planEdit(place, options.remove === true))
        const done = edits.map(edit => ({
          edit,
          backup: options.print || edit.action === 'unchanged' ? undefined : carryOut(edit),
        }))
        if (context.options.json)
          return context.json({
            agent: name,
            scope,
            printed: options.print ?? false,
            command: server,
            files: done.map(({ edit: { place, action }, backup }) => ({
              file: place.file,
              action,
              backup: backup ?? null,
            })),
          })
        if (context.options.quiet) return
        if (options.print) return (await import('../connect/print-edits.ts')).printEdits(context, edits)
        for (const { edit, backup } of done)
          context.line(`${sentence(edit, agent, options.remove === true)}${kept(backup)}`)
        const isNew = done.some(({ edit }) => edit.action !== 'unchanged')
        if (isNew && !options.remove) sayNext(context, agent, scope, server)
      }),
    )
}

function agentName(words: string[]): string {
  const [name, ...more] = words
  if (more.length > 0) throw wrongUsage('connect', `"${more[0]}" is one word too many`)
  if (name === undefined) throw wrongUsage('connect', `no agent is named (${names.join(', ')})`)
  if (names.includes(name)) return name
  throw wrongUsage('connect', `"${name}" is none of ${names.join(', ')}`, nearest(name, names))
}

function sentence({ place: { file }, action }: SettingsEdit, { title }: Agent, isRemoval: boolean): string {
  if (action === 'unchanged')
    return isRemoval ? `${title} is not connected in ${file}` : `${title} is connected already, in ${file}`
  return isRemoval
    ? `${title} is not connected any more: ${action} ${file}`
    : `${title} is connected: ${action} ${file}`
}

const kept = (backup: string | undefined): string => (backup === undefined ? '' : ` (before: ${backup})`)

function sayNext(context: Context, { title, next }: Agent, scope: Scope, [word]: string[]): void {
  context.notice(`${title} sees it when it is started anew${next[scope] ? `; ${next[scope]}` : ''}`)
  if (scope === 'project' && word !== 'savepoint')
    context.notice(`the file names ${word}: with savepoint in PATH it would work on other machines, too`)
}
