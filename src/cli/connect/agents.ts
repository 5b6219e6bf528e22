/** The agents that can be connected, where each keeps its settings, and what our entry in them looks like. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { claudeHooks } from './claude-hooks.ts'
import { getJson, removeJson, setJson } from './jsonc-edit.ts'
import type { Place } from './place.ts'
import { removeToml, setToml, tableText } from './toml-edit.ts'

export type Scope = 'project' | 'user'

export interface Surroundings {
  /** Where the agent is started. */
  project: string
  /** $HOME, where it is needed. */
  home: () => string
  env: NodeJS.ProcessEnv
  /** What starts the server, and what answers a hook. */
  server: string[]
  hook: string[]
}

export interface Agent {
  title: string
  scopes: readonly [preferred: Scope, ...others: Scope[]]
  /** What the user still has to do; shown after a change. */
  next: Partial<Record<Scope, string>>
  places(scope: Scope, where: Surroundings): Place[]
}

const NAME = 'savepoint'

const json = (file: string, path: string[], entry: Record<string, unknown>): Place => ({
  file,
  // What users have added to our entry stays, as their environment for it, or that it is trusted.
  put: text =>
    isOurs(getJson(text, path))
      ? Object.entries(entry).reduce((rest, [key, value]) => setJson(rest, [...path, key], value), text)
      : setJson(text, path, entry),
  take: text => removeJson(text, path),
  hasOurs: text => isOurs(getJson(text, path)),
})

/** What `commandFor` writes, wherever the program was then; under our name users may have something of their own. */
function isOurs(entry: unknown): boolean {
  const { command, args } = (entry ?? {}) as { command?: unknown; args?: unknown }
  const [program, verb] = [command, args].flat()
  return verb === 'mcp' && /(?:^|\/)(?:savepoint|cli\.js|main\.ts)$/.test(String(program))
}

/** The same in TOML, as it is written there. */
const oursInToml = /^\s*command\s*=\s*"(?:[^"]*\/)?(?:savepoint|cli\.js|main\.ts)"[ \t]*\r?\n\s*args\s*=\s*\[\s*"mcp"/m

/** It is in a directory that only this agent has. */
const inOwn = (place: Place): Place => ({ ...place, isInOwnDirectory: true })

const asCommand = ([command, ...args]: string[]) => ({ command: command!, args })
const mcpServers = (file: string, server: string[]) => json(file, ['mcpServers', NAME], asCommand(server))

export const agents: Record<string, Agent> = {
  claude: {
    title: 'Claude Code',
    scopes: ['project', 'user'],
    next: { project: 'Claude Code asks once whether the servers of .mcp.json may be used' },
    places: (scope, { project, home, env, server, hook }) =>
      scope === 'project'
        ? [
            mcpServers(join(project, '.mcp.json'), server),
            // The one that is not shared with others, who may have no savepoint.
            inOwn(claudeHooks(join(project, '.claude', 'settings.local.json'), hook)),
          ]
        : [
            mcpServers(join(env.CLAUDE_CONFIG_DIR || home(), '.claude.json'), server),
            inOwn(claudeHooks(join(env.CLAUDE_CONFIG_DIR || join(home(), '.claude'), 'settings.json'), hook)),
          ],
  },
  codex: {
    title: 'Codex',
    scopes: ['user', 'project'],
    next: { project: 'Codex reads it only in directories that it was told to trust' },
    places(scope, { project, home, env, server }) {
      const file = scope === 'project' ? join(project, '.codex') : env.CODEX_HOME || join(home(), '.codex')
      const path = ['mcp_servers', NAME]
      return [
        {
          file: join(file, 'config.toml'),
          isInOwnDirectory: true,
          put: text => setToml(text, path, asCommand(server)),
          take: text => removeToml(text, path),
          hasOurs: text => oursInToml.test(tableText(text, path)),
        },
      ]
    },
  },
  gemini: {
    title: 'Gemini CLI',
    scopes: ['project', 'user'],
    next: { project: 'Gemini CLI uses servers only in folders that it was told to trust' },
    places: (scope, { project, home, server }) => [
      inOwn(mcpServers(join(scope === 'project' ? project : home(), '.gemini', 'settings.json'), server)),
    ],
  },
  cursor: {
    title: 'Cursor',
    scopes: ['project', 'user'],
    next: {},
    // Cursor does not start servers in the directory of the project; it replaces this word by that.
    places: (scope, { project, home, server }) => [
      inOwn(
        scope === 'project'
          ? mcpServers(join(project, '.cursor', 'mcp.json'), [...server, '-t', `\${workspaceFolder}`])
          : mcpServers(join(home(), '.cursor', 'mcp.json'), server),
      ),
    ],
  },
  opencode: {
    title: 'opencode',
    scopes: ['project', 'user'],
    next: {},
    places(scope, { project, home, env, server }) {
      const directory = scope === 'project' ? project : join(env.XDG_CONFIG_HOME || join(home(), '.config'), 'opencode')
      const commented = join(directory, 'opencode.jsonc')
      const file = existsSync(commented) ? commented : join(directory, 'opencode.json')
      const place = json(file, ['mcp', NAME], { type: 'local', command: server, enabled: true })
      return [scope === 'project' ? place : inOwn(place)]
    },
  },
}
