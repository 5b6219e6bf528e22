/** The HTTP face as an OpenAPI 3.1 document, made from the table. */
import { z } from 'zod'
import { errorCatalogue } from '../errors/errors.ts'
import type { Operation } from './operation.ts'
import { inputSchema, operations } from './table.ts'

type Json = Record<string, unknown>

/** Where zod puts what several shapes use. */
const SHARED = '__shared'

const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })

/** What an answer is called: as its shape is, where that has a name. */
const answerName = ({ name, output }: Operation): string => output.meta()?.id ?? `${capital(name)}Answer`
const framesName = ({ name }: Operation): string => `${capital(name)}Frame`
const eventsName = ({ name }: Operation): string => `${capital(name)}Events`
const capital = (name: string): string => `${name[0]!.toUpperCase()}${name.slice(1)}`

/** Shapes with a name stand once, below `components`. */
function answerSchemas(): Json {
  const registry = z.registry<{ id: string }>()
  for (const operation of operations) {
    registry.add(operation.output, { id: answerName(operation) })
    if (operation.frames) registry.add(operation.frames, { id: framesName(operation) })
  }
  const { schemas } = z.toJSONSchema(registry, {
    io: 'output',
    uri: id => `#/components/schemas/${id}`,
    // Not every generator knows `const`; all know an `enum` of one.
    override: ({ jsonSchema }) => {
      if ('const' in jsonSchema) jsonSchema.enum = [jsonSchema.const as string]
    },
  })
  const all: Json = {}
  for (const [name, schema] of Object.entries(schemas)) {
    const { $schema, $id, $defs, ...rest } = schema as Json
    if (name !== SHARED) all[name] = rest
    // What several shapes use has a name of its own there.
    for (const [inner, definition] of Object.entries(($defs as Json) ?? {})) all[inner] ??= definition
  }
  const text = JSON.stringify(all)
    .replaceAll(`#/components/schemas/${SHARED}#/$defs/`, '#/components/schemas/')
    .replaceAll('"#/$defs/', '"#/components/schemas/')
  return JSON.parse(text)
}

const objectOf = (properties: Json): Json => ({ type: 'object', required: Object.keys(properties), properties })
const text = { type: 'string' }
const orNull = (type: string): Json => ({ type: [type, 'null'] })
/** What an error is about; each has its own. */
const anything = { anyOf: [{ type: 'object', additionalProperties: true }, { type: 'null' }] }

/** What stands in the `data` of each server-sent event: the frames of the operation, and at the end its answer or an error. */
function eventSchema(operation: Operation): Json {
  const ok = objectOf({ ok: { type: 'boolean', enum: [true] } })
  const answer = refTo(answerName(operation))
  const last = operation.isFlat ? { allOf: [ok, answer] } : objectOf({ ...(ok.properties as Json), result: answer })
  const others = ['Notice', 'Progress', 'Failure'].map(refTo)
  return { anyOf: [refTo(framesName(operation)), last, ...others] }
}

const eventParts: Json = {
  Notice: objectOf({ notice: text }),
  Progress: objectOf({
    progress: objectOf({
      phase: text,
      files: { type: 'integer' },
      bytes: { type: 'integer' },
      total_files: orNull('integer'),
      total_bytes: orNull('integer'),
    }),
  }),
  Failure: objectOf({
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: refTo('ErrorCode'), message: text, hint: orNull('string'), data: anything },
    },
  }),
}

const problem = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: refTo('ErrorCode'),
    hint: { ...orNull('string'), description: 'what to do next' },
    data: anything,
  },
}

/** As JSON, in one piece; what tells something on the way also, or only, as server-sent events. */
function contentOf(operation: Operation): Json {
  const isEndless = operation.follows?.({}) === true
  return {
    ...(isEndless ? {} : { 'application/json': { schema: refTo(answerName(operation)) } }),
    ...(operation.frames ? { 'text/event-stream': { schema: refTo(eventsName(operation)) } } : {}),
  }
}

function bodyOf(schema: Json): Json {
  const names = Object.keys((schema.properties as Json) ?? {})
  if (names.length === 0) return {}
  const isRequired = ((schema.required as string[] | undefined) ?? []).length > 0
  return { requestBody: { required: isRequired, content: { 'application/json': { schema } } } }
}

function pathOf(operation: Operation): Json {
  const { $schema, ...schema } = inputSchema(operation) as Json & { properties?: Record<string, Json> }
  const own = {
    summary: operation.summary,
    tags: [operation.effect],
    responses: {
      200: { description: 'done', content: contentOf(operation) },
      default: {
        description: 'not done, or not all of it',
        content: { 'application/problem+json': { schema: refTo('Problem') } },
      },
    },
  }
  const post = { post: { ...own, operationId: operation.name, ...bodyOf(schema) } }
  if (operation.effect !== 'read') return post
  const required = new Set((schema.required as string[] | undefined) ?? [])
  const parameters = Object.entries(schema.properties ?? {}).map(([name, { description, ...inner }]) => ({
    name,
    in: 'query',
    required: required.has(name),
    ...(description === undefined ? {} : { description }),
    schema: inner,
  }))
  return { get: { ...own, operationId: `get_${operation.name}`, parameters }, ...post }
}

export function openApiDocument(version: string): Json {
  const following = operations.filter(({ frames }) => frames !== undefined)
  const events = Object.fromEntries(following.map(each => [eventsName(each), eventSchema(each)]))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Savepoint',
      version,
      description:
        'Snapshots, rollback and traces of a protected directory. What only reads can be asked with GET, too.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths: Object.fromEntries(operations.map(each => [`/v1/${each.name}`, pathOf(each)])),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: {
        ...answerSchemas(),
        ...events,
        ...eventParts,
        ErrorCode: { type: 'string', enum: Object.keys(errorCatalogue) },
        Problem: problem,
      },
    },
  }
}
