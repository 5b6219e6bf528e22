/**
 * The HTTP face: a route per operation of the table. Whoever calls needs the token, names the server as it is named, and
 * comes from no other web page.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type ErrorCode, errorCatalogue, SavepointError } from '../errors/errors.ts'
import { isTooDeep, MAX_DEPTH } from '../model/nesting.ts'
import { isLast } from './frames.ts'
import { openApiDocument } from './openapi.ts'
import type { Operation } from './operation.ts'
import { fromQuery } from './query.ts'
import type { Out } from './service.ts'
import { checkInput, findOperation, operations } from './table.ts'

const MAX_BODY_BYTES = 1024 * 1024
const EVENTS = 'text/event-stream'
const eventHeaders = { 'content-type': EVENTS }
/** Of events that nobody has read yet: beyond it, whoever tells them waits or leaves some out. */
const MAX_WAITING_BYTES = 1024 * 1024

/** Carries an operation out: the last frame has `ok` or `error`. `context`: the request, as whose it is done. */
export type Carrier = (
  operation: Operation,
  input: Record<string, unknown>,
  out: Out,
  context: Context,
) => Promise<void>

export interface HttpOptions {
  carryOut: Carrier
  token: string
  /**
   * What the server may be called: `host:port`. Another name is one that a foreign page has pointed here. None: it listens
   * wherever this machine is reached, and all its names cannot be known.
   */
  hosts: ReadonlySet<string>
  version: string
}

export function httpApp({ carryOut, token, hosts, version }: HttpOptions): Hono {
  const app = new Hono()
  app.onError((error, context) => problem(context, error))
  app.notFound(context => problem(context, nowhere(context.req.path), 404))
  app.use(async (context, next) => {
    checkPlace(context, hosts)
    // Before there is an answer, which would have to be made anew.
    context.header('cache-control', 'no-store')
    await next()
  })
  const document = openApiDocument(version)
  app.get('/openapi.json', context => context.json(document))
  app.get('/docs', context => context.html(docsPage()))
  const isRight = sameAs(token)
  app.use('/v1/*', async (context, next) => {
    const [, given = ''] = /^bearer +(.*)$/i.exec(context.req.header('authorization') ?? '') ?? []
    if (!isRight(given)) {
      context.header('www-authenticate', 'Bearer')
      return problem(context, new SavepointError('usage', 'The token is missing or wrong', { hint: tokenHint }), 401)
    }
    await next()
  })
  app.use('/v1/:name', async (context, next) => {
    try {
      named(context)
    } catch (error) {
      // An operation that does not exist is an address that does not.
      return problem(context, error, 404)
    }
    await next()
  })
  app.post('/v1/*', bodyLimit({ maxSize: MAX_BODY_BYTES, onError: context => problem(context, tooLarge, 413) }))

  const answer = (context: Context, operation: Operation, given: unknown) => {
    const input = checkInput(operation, given)
    const carry = (out: Out) => carryOut(operation, input, out, context)
    if (context.req.header('accept')?.includes(EVENTS))
      // Nobody would ever read them, nor be seen to go.
      return context.req.method === 'HEAD' ? context.body(null, 200, eventHeaders) : asEvents(context, carry)
    if (operation.follows?.(input)) return problem(context, endless(operation), 406)
    return asJson(context, operation, carry)
  }
  app.get('/v1/:name', context => {
    const operation = named(context)
    if (operation.effect !== 'read') return notBy(context, operation)
    return answer(context, operation, fromQuery(operation, context.req.queries()))
  })
  app.post('/v1/:name', async context => {
    const operation = named(context)
    return answer(context, operation, fromBody(await context.req.text()))
  })
  app.all('/v1/:name', context => notBy(context, named(context)))
  return app
}

const tokenHint =
  'Send the header `Authorization: Bearer TOKEN`; `savepoint daemon --http` prints the token when it starts'
const tooLarge = new SavepointError('usage', `Cannot read the request: it is larger than ${MAX_BODY_BYTES} bytes`)
const endless = ({ name }: Operation) =>
  new SavepointError('usage', `Cannot answer ${name} in one piece: it goes on`, { hint: `Send \`Accept: ${EVENTS}\`` })
const nowhere = (path: string) =>
  new SavepointError('usage', `There is no ${path}`, {
    hint: 'Operations are at /v1/NAME; /docs lists them, /openapi.json describes them',
  })

const named = (context: Context): Operation => findOperation(context.req.param('name')!)

function notBy(context: Context, { name, effect }: Operation): Response {
  const isRead = effect === 'read'
  const { method } = context.req
  const why = method === 'GET' || method === 'HEAD' ? ': it changes something' : ''
  context.header('allow', isRead ? 'GET, HEAD, POST' : 'POST')
  const error = new SavepointError('usage', `Cannot call ${name} with ${method}${why}`, {
    hint: isRead ? 'Use GET or POST' : 'Use POST',
  })
  return problem(context, error, 405)
}

/** Equally long comparisons, whatever was given. */
function sameAs(wanted: string): (given: string) => boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer')
  const right = digest(wanted)
  return given => timingSafeEqual(digest(given), right)
}

/** A page of another origin may make a browser send requests here; it must not get anywhere. */
function checkPlace(context: Context, hosts: ReadonlySet<string>): void {
  const host = context.req.header('host')
  const origin = context.req.header('origin')
  const isNamed = host !== undefined && (hosts.size === 0 || hosts.has(host))
  const isOurs = origin === undefined || origin === `http://${host}` || origin === `https://${host}`
  if (isNamed && isOurs) return
  throw new SavepointError(
    'usage',
    `Refused: the request names ${isNamed ? `the origin ${origin}` : `the host ${host}`}`,
    {
      hint: hosts.size === 0 ? undefined : `This server is ${[...hosts].join(', ')}`,
      data: { forbidden: true },
    },
  )
}

function fromBody(text: string): unknown {
  if (text === '') return {}
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (cause) {
    throw new SavepointError('usage', 'Cannot read the request: its body is no JSON', { cause })
  }
  if (!isTooDeep(body)) return body
  throw new SavepointError('usage', `Cannot read the request: its body is more than ${MAX_DEPTH} levels deep`)
}

const statuses: Partial<Record<ErrorCode, ContentfulStatusCode>> = {
  usage: 400,
  'config.invalid': 400,
  'path.outside': 400,
  'name.invalid': 400,
  'command.not-found': 400,
  'command.not-executable': 400,
  'run.inside': 403,
  'timeline.none': 404,
  'snapshot.unknown': 404,
  'path.unknown': 404,
  'tag.unknown': 404,
  'run.unknown': 404,
  'process.unknown': 404,
  'operation.none': 404,
  'snapshot.ambiguous': 409,
  'snapshot.pinned': 409,
  'pool.full': 409,
  'target.missing': 409,
  'target.replaced': 409,
  'target.refused': 409,
  'snapshots.disabled': 409,
  'command.failed-to-start': 409,
  busy: 423,
  unsupported: 501,
  'disk.full': 507,
}

/** How the last frame begins that carries a result: what follows, but for the last brace, is that and need not be read. */
const RESULT = '{"ok":true,"result":'

const jsonText = (context: Context, text: string): Response =>
  context.body(text, 200, { 'content-type': 'application/json' })

/** The answer alone: what is told on the way is for those who follow it. */
async function asJson(context: Context, { isFlat }: Operation, carry: (out: Out) => Promise<void>): Promise<Response> {
  let last = ''
  const frame = (text: string) => {
    if (isLast(text)) last = text
  }
  const out: Out = {
    frame,
    isCrowded: false,
    drained: async () => {},
    // Only for those who want it: what takes a moment ends before anybody could go away.
    get signal() {
      return context.req.raw.signal
    },
  }
  await carry(out)
  if (last.startsWith(RESULT) && !isFlat) return jsonText(context, last.slice(RESULT.length, -1))
  const { error, ok, ...flat } = JSON.parse(last)
  if (error) return problem(context, new SavepointError(error.code, error.message, error))
  return context.json(flat)
}

/** Server-sent events: each frame is one, named by what it has; the last one is `end` or `error`. */
function asEvents(context: Context, carry: (out: Out) => Promise<void>): Response {
  const stop = new AbortController()
  let room: (() => void) | undefined
  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const out: Out = {
          frame(text) {
            const [, kind] = /^\{"(\w+)"/.exec(text)!
            const event = `event: ${kind === 'ok' ? 'end' : kind}\ndata: ${text}\n\n`
            if (!stop.signal.aborted) controller.enqueue(Buffer.from(event))
          },
          get isCrowded() {
            return (controller.desiredSize ?? 0) <= 0
          },
          drained: () =>
            new Promise(resolve => {
              room = resolve
              if ((controller.desiredSize ?? 1) > 0 || stop.signal.aborted) resolve()
            }),
          signal: AbortSignal.any([stop.signal, context.req.raw.signal]),
        }
        void carry(out).then(() => !stop.signal.aborted && controller.close())
      },
      pull: () => room?.(),
      cancel() {
        stop.abort()
        room?.()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: MAX_WAITING_BYTES }),
  )
  return context.body(stream, 200, eventHeaders)
}

/** RFC 9457, with the code of the catalogue. */
function problem(context: Context, thrown: unknown, status?: ContentfulStatusCode): Response {
  const error =
    thrown instanceof SavepointError ? thrown : new SavepointError('bug', String((thrown as Error)?.message ?? thrown))
  const known = error.data?.forbidden ? 403 : (statuses[error.code] ?? 500)
  const body = {
    type: `urn:savepoint:${error.code}`,
    title: errorCatalogue[error.code].meaning,
    status: status ?? known,
    detail: error.message,
    code: error.code,
    hint: error.hint ?? null,
    data: error.data ?? null,
  }
  return context.body(JSON.stringify(body), body.status, { 'content-type': 'application/problem+json' })
}

/** Everything on one page, without a script: it is opened beside secrets. */
function docsPage(): string {
  const escaped = (text: string) => text.replace(/[&<>"]/g, each => `&#${each.charCodeAt(0)};`)
  const rows = operations.map(({ name, effect, summary, input }) => {
    const parameters = Object.keys(input.shape).join(', ')
    return `<tr><td><code>${effect === 'read' ? 'GET, POST' : 'POST'} /v1/${name}</code></td><td>${effect}</td><td>${escaped(summary)}</td><td>${parameters}</td></tr>`
  })
  return `<!doctype html><meta charset="utf-8"><title>Savepoint: HTTP</title><style>body{font:15px system-ui;margin:2em}td{padding:.2em .8em;vertical-align:top}</style>
<h1>Savepoint over HTTP</h1><p>All requests below <code>/v1</code> need <code>Authorization: Bearer TOKEN</code>. Schemas: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<table><tr><th>Route<th>Effect<th>Does<th>Parameters</tr>${rows.join('\n')}</table>
`
}
