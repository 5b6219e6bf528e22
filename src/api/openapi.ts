/** The HTTP face as an OpenAPI 3.1 document, made from the table. */
import { z } from 'zod'
import { errorCatalogue } from '../errors/errors.ts'
import type { Operation } from './operation.ts'
import { inputSchema, operations } from './table.ts'

type Json = Record<string, unknown>

/** Where zod puts what several shapes use. */
const SHARED = '__shared'

/** Shapes with a name stand once, below `components`. */
function outputs(): { schemas: Json; of: Map<Operation, Json> } {
  const registry = z.registry<{ id: string }>()
  for (const operation of operations) registry.add(operation.output, { id: answerName(operation) })
  const { schemas } = z.toJSONSchema(registry, { io: 'output', uri: id => `#/components/schemas/${id}` })
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
  return {
    schemas: JSON.parse(text),
    of: new Map(operations.map(operation => [operation, { $ref: `#/components/schemas/${answerName(operation)}` }])),
  }
}

const answerName = ({ name }: Operation): string => `${name[0]!.toUpperCase()}${name.slice(1)}Answer`

const problem = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', enum: Object.keys(errorCatalogue) },
    hint: { type: ['string', 'null'], description: 'what to do next' },
    data: { type: ['object', 'null'] },
  },
}

function pathOf(operation: Operation, answer: Json): Json {
  const { $schema, ...schema } = inputSchema(operation) as Json & { properties?: Record<string, Json> }
  const own = {
    summary: operation.summary,
    tags: [operation.effect],
    responses: {
      200: { description: 'done', content: { 'application/json': { schema: answer } } },
      default: {
        description: 'not done, or not all of it',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  }
  const post = {
    post: {
      ...own,
      operationId: operation.name,
      requestBody: { required: false, content: { 'application/json': { schema } } },
    },
  }
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
  const { schemas, of } = outputs()
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
    paths: Object.fromEntries(operations.map(each => [`/v1/${each.name}`, pathOf(each, of.get(each)!)])),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { ...schemas, Problem: problem },
    },
  }
}
