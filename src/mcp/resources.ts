/** Snapshots and runs as resources: their lists are those of the operations, their contents those of tools. */
import type { z } from 'zod'
import type * as shapes from '../api/shapes.ts'
import { quoteCommand } from '../model/shell-quote.ts'
import { callTool } from './call-tool.ts'
import { shorten } from './page.ts'
import type { Session } from './session.ts'
import { findTool } from './tools.ts'
import { type SnapshotJson, snapshotLine } from './words.ts'

const SCHEME = 'savepoint://'
const PER_PAGE = 100
const NAME_CHARS = 80
const JSON_TYPE = 'application/json'

/** Kind → the tool that reads it, and the parameter that names it. */
const kinds: Record<string, { tool: string; parameter: string; title: string; description: string }> = {
  snapshots: {
    tool: 'snapshots_show',
    parameter: 'checkpoint',
    title: 'Snapshot',
    description: 'A snapshot by id, prefix, tag or label, with what it changed',
  },
  runs: { tool: 'commands_list', parameter: 'run', title: 'Run', description: 'A run by id, with its commands' },
}

export const resourceTemplates = Object.entries(kinds).map(([kind, { parameter, title, description }]) => ({
  uriTemplate: `${SCHEME}${kind}/{${parameter}}{?start_index,max_length}`,
  name: kind,
  title,
  description,
  mimeType: JSON_TYPE,
}))

/** Snapshots, newest first, then runs; `cursor` is where the page before ended. */
export async function listResources({ call }: Session, cursor: string | undefined) {
  const snapshots = await call<SnapshotJson[]>('snapshots')
  const runs = await call<z.output<typeof shapes.run>[]>('runs')
  const all = [
    ...snapshots.map(snapshot => resource('snapshots', snapshot.id, snapshot.label, snapshotLine(snapshot))),
    ...runs.map(({ id, command }) => resource('runs', id, null, shorten(quoteCommand(command), NAME_CHARS))),
  ]
  const start = /^\d+$/.test(cursor ?? '') ? Number(cursor) : 0
  const next = start + PER_PAGE
  return {
    resources: all.slice(start, next),
    ...(next < all.length ? { nextCursor: String(next) } : {}),
  }
}

const resource = (kind: string, id: string, label: string | null, description: string) => ({
  uri: `${SCHEME}${kind}/${id}`,
  name: id,
  title: label === null ? id : `${id} (${label})`,
  description,
  mimeType: JSON_TYPE,
})

/** What an address names; undefined when it is none of ours. */
export function parseAddress(uri: string) {
  const [, kind, rest] = /^savepoint:\/\/(\w+)\/(.+)$/.exec(uri) ?? []
  const found = kind !== undefined && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!found || rest === undefined) return undefined
  const [name, query] = rest.split('?', 2)
  const numbers = [...new URLSearchParams(query)].map(([key, value]) => [key, Number(value)])
  try {
    return { tool: found.tool, input: { ...Object.fromEntries(numbers), [found.parameter]: decodeURIComponent(name!) } }
  } catch {
    return undefined // a % that begins no escape
  }
}

export async function readResource(
  session: Session,
  uri: string,
  { tool, input }: NonNullable<ReturnType<typeof parseAddress>>,
) {
  const { structured } = await callTool(findTool(tool)!, input, session)
  return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(structured, null, 2) }] }
}
