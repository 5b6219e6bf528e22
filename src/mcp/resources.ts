/** Snapshots, runs and the log of events as resources: their lists are those of the operations, their contents those of tools or operations. */
import type { z } from 'zod'
import { fromQuery } from '../api/query.ts'
import type * as shapes from '../api/shapes.ts'
import { findOperation } from '../api/table.ts'
import { SavepointError } from '../errors/errors.ts'
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
/** So that a page fits a context window. */
const EVENTS_PER_PAGE = 20

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

const eventLog = {
  name: 'events',
  title: 'Event log',
  description:
    'Everything that happened to files, snapshots, operations and runs, newest first; `next` is the cursor of the next page',
  mimeType: JSON_TYPE,
}

export const resourceTemplates = [
  ...Object.entries(kinds).map(([kind, { parameter, title, description }]) => ({
    uriTemplate: `${SCHEME}${kind}/{${parameter}}{?start_index,max_length}`,
    name: kind,
    title,
    description,
    mimeType: JSON_TYPE,
  })),
  {
    uriTemplate: `${SCHEME}events{?${Object.keys(findOperation('events').input.shape).join(',').replace('kind', 'kind*')}}`,
    ...eventLog,
  },
]

/** The log of events, then snapshots, newest first, then runs; `cursor` is where the page before ended. */
export async function listResources({ call }: Session, cursor: string | undefined) {
  if (!/^\d+$/.test(cursor ?? '0'))
    throw new SavepointError('usage', `Cannot go on from "${cursor}": that is no cursor of this list`, {
      hint: 'Take `nextCursor` of the page before',
    })
  const snapshots = await call<SnapshotJson[]>('snapshots')
  const runs = await call<z.output<typeof shapes.run>[]>('runs')
  const all = [
    { uri: `${SCHEME}events`, ...eventLog },
    ...snapshots.map(snapshot => resource('snapshots', snapshot.id, snapshot.label, snapshotLine(snapshot))),
    ...runs.map(({ id, command }) => resource('runs', id, null, shorten(quoteCommand(command), NAME_CHARS))),
  ]
  const start = Number(cursor ?? 0)
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

/** Reads what an address names. */
type Read = (session: Session) => Promise<unknown>

/** undefined when it is none of ours. */
export function findResource(uri: string): Read | undefined {
  const [, place, query] = /^savepoint:\/\/([^?]*)(?:\?(.*))?$/s.exec(uri) ?? []
  const parameters = new URLSearchParams(query)
  if (place === 'events') return session => readEvents(session, parameters)
  const [, kind, name] = /^(\w+)\/(.+)$/s.exec(place ?? '') ?? []
  const found = kind !== undefined && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!found) return undefined
  // What is no number is refused as it was written.
  const numbers = [...parameters].map(([key, value]) => [key, /^\d+$/.test(value) ? Number(value) : value])
  try {
    const input = { ...Object.fromEntries(numbers), [found.parameter]: decodeURIComponent(name!) }
    return async session => (await callTool(findTool(found.tool)!, input, session)).structured
  } catch {
    return undefined // a % that begins no escape
  }
}

function readEvents({ call }: Session, parameters: URLSearchParams): Promise<unknown> {
  const names = [...new Set(parameters.keys())]
  const texts = Object.fromEntries(names.map(name => [name, parameters.getAll(name)]))
  return call('events', { limit: EVENTS_PER_PAGE, ...fromQuery(findOperation('events'), texts) })
}

export async function readResource(session: Session, uri: string, read: Read) {
  return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(await read(session), null, 2) }] }
}
