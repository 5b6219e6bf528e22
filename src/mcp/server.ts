/** The MCP server: tools and resources, made from the table of operations. One per connection. */
import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server'
import { asSavepointError } from '../api/as-savepoint-error.ts'
import { findOperation } from '../api/table.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { OpenOptions } from '../index.ts'
import { nearest } from '../model/suggest.ts'
import { callTool } from './call-tool.ts'
import { failureOf, failureText } from './failure.ts'
import { findResource, listResources, readResource, resourceTemplates } from './resources.ts'
import { Session } from './session.ts'
import { describeTool, findTool, toolNames, tools } from './tools.ts'

export interface ServerOptions {
  version: string
  /** How timelines are opened. */
  open: OpenOptions
  /** Stops what is going on at a safe point. */
  signal?: AbortSignal
}

const instructions =
  'Savepoint keeps snapshots of the directory you work in, so that changes of files can be seen and taken back. Before something ' +
  'risky: snapshots_create. To look: snapshots_changes, snapshots_diff, snapshots_list. To go back: snapshots_revert (one file), ' +
  'snapshots_rollback (all; dry_run first), snapshots_undo (the last operation). A "checkpoint" is an id, a unique prefix of one, a ' +
  'tag or a label. Paths are relative to the root of the protected directory. Long answers come in pages: go on with start_index. ' +
  'When an answer is an error, nothing was done unless it says otherwise.'

export class McpFace {
  readonly #options: ServerOptions
  /** What changes something is done one after the other; what only looks does not wait. */
  #last: Promise<unknown> = Promise.resolve()
  readonly #going = new Set<Promise<unknown>>()

  constructor(options: ServerOptions) {
    this.#options = options
  }

  /** When nothing is being done any more, also of what nobody waits for. */
  async idle(): Promise<void> {
    while (this.#going.size > 0) await Promise.allSettled(this.#going)
  }

  connect(): Server {
    const server = new Server(
      { name: 'savepoint', title: 'Savepoint', version: this.#options.version },
      { capabilities: { tools: {}, resources: {} }, instructions },
    )
    server.setRequestHandler('tools/list', () => ({ tools: tools.map(describeTool) }))
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) =>
      this.#callTool(params.name, params.arguments ?? {}, mcpReq.signal),
    )
    server.setRequestHandler('resources/list', ({ params }, { mcpReq }) =>
      this.#asResource(mcpReq.signal, session => listResources(session, params?.cursor), { resources: [] }),
    )
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }))
    server.setRequestHandler('resources/read', ({ params: { uri } }, { mcpReq }) => {
      const read = findResource(uri)
      if (!read) throw new ResourceNotFoundError(uri)
      return this.#asResource(mcpReq.signal, session => readResource(session, uri, read))
    })
    return server
  }

  async #callTool(name: string, given: unknown, signal: AbortSignal) {
    const tool = findTool(name)
    if (!tool) throw unknownTool(name)
    const isReadOnly = findOperation(tool.operation).effect === 'read'
    const work = () => this.#inSession(signal, session => callTool(tool, given, session))
    try {
      const { text, structured } = await (isReadOnly ? work() : this.#afterOthers(work))
      return { content: [{ type: 'text' as const, text }], structuredContent: structured }
    } catch (error) {
      return failureOf(error, isReadOnly)
    }
  }

  #afterOthers<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work)
    this.#last = mine.catch(() => {})
    return mine
  }

  #inSession<T>(signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T> {
    const done = this.#open(signal, work)
    this.#going.add(done)
    const forget = () => void this.#going.delete(done)
    done.then(forget, forget)
    return done
  }

  async #open<T>(signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T> {
    const { open, signal: all } = this.#options
    const either = all ? AbortSignal.any([signal, all]) : signal
    either.throwIfAborted()
    const session = new Session({ ...open, signal: either })
    try {
      return await work(session)
    } finally {
      session.close()
    }
  }

  /** `none`: the answer where nothing is protected yet. */
  async #asResource<T>(signal: AbortSignal, work: (session: Session) => Promise<T>, none?: T): Promise<T> {
    try {
      return await this.#inSession(signal, work)
    } catch (thrown) {
      const error = asSavepointError(thrown)
      if (none !== undefined && error.code === 'timeline.none') return none
      const code = absent.has(error.code) ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
      throw new ProtocolError(code, failureText(error, true), { code: error.code })
    }
  }
}

/** Nobody's fault but the address's. */
const absent = new Set<ErrorCode>(['snapshot.unknown', 'snapshot.ambiguous', 'run.unknown', 'timeline.none', 'usage'])

function unknownTool(name: string): ProtocolError {
  const meant = nearest(name, toolNames())
  const next = meant ? `Did you mean ${meant}?` : `There are: ${toolNames().join(', ')}`
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `NOTHING WAS EXECUTED: there is no tool "${name}". Next: ${next}`,
  )
}
