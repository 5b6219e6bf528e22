/**
 * The one table of operations. The socket protocol, HTTP routes, MCP tools, the `ctl` client and docs/api.md are made from
 * it; nothing of an operation is written twice.
 */
import { z } from 'zod'
import { SavepointError } from '../errors/errors.ts'
import { nearest } from '../model/suggest.ts'
import type { Operation } from './operation.ts'
import { changeOperations } from './operations-change.ts'
import { lookOperations } from './operations-look.ts'
import { processOperations } from './operations-process.ts'

/** Of a value that is refused. */
const MAX_SHOWN = 100

export const operations: readonly Operation[] = [...lookOperations, ...changeOperations, ...processOperations]

const byName = new Map(operations.flatMap(each => [each.name, ...(each.aliases ?? [])].map(name => [name, each])))

export function findOperation(name: string): Operation {
  const found = byName.get(name)
  if (found) return found
  const meant = nearest(name, byName.keys())
  throw new SavepointError('usage', `There is no operation "${name}"`, {
    hint: meant ? `Did you mean "${meant}"?` : `There are: ${operations.map(each => each.name).join(', ')}`,
    data: { operation: name, nearest: meant },
  })
}

/** What an operation is called with, checked. A parameter that it does not have is refused, with the one that was meant. */
export function checkInput(operation: Pick<Operation, 'name' | 'input'>, input: unknown): Record<string, unknown> {
  const known = Object.keys(operation.input.shape)
  const given = typeof input === 'object' && input !== null && !Array.isArray(input) ? Object.keys(input) : []
  const unknown = given.find(name => !known.includes(name))
  if (unknown !== undefined) {
    const meant = nearest(unknown, known)
    const all = known.length > 0 ? `${operation.name} takes: ${known.join(', ')}` : `${operation.name} takes none`
    throw wrong(operation, `it has no parameter "${unknown}"`, meant ? `Did you mean "${meant}"?` : all)
  }
  const result = operation.input.safeParse(input ?? {})
  if (result.success) return result.data
  throw notFitting(operation, input, result.error.issues[0]!)
}

/** What is wrong with a value, and what the parameter takes. */
function notFitting(operation: Pick<Operation, 'name' | 'input'>, input: unknown, issue: z.core.$ZodIssue) {
  const [name, ...inner] = issue.path as (string | number)[]
  if (name === undefined) return wrong(operation, 'its parameters are no object', undefined)
  const taken = parametersOf(operation).find(each => each.name === name)!
  const value = (input as Record<string, unknown> | undefined)?.[name]
  const hint = `It takes ${taken.type}${taken.description ? `: ${taken.description}` : ''}`
  if (value === undefined) return wrong(operation, `"${name}" is missing`, hint)
  const isTwice = Array.isArray(value) && !taken.type.includes('list')
  if (isTwice) return wrong(operation, `"${name}" is a list, and takes one value`, hint)
  const where = [name, ...inner].join('.')
  const given = inner.reduce((at: unknown, key) => (at as Record<string | number, unknown> | undefined)?.[key], value)
  const meant = issue.code === 'invalid_value' ? nearest(String(given), issue.values.map(String)) : undefined
  const better = meant === undefined ? hint : `Did you mean "${meant}"?`
  return wrong(operation, `"${where}" does not take ${JSON.stringify(given)?.slice(0, MAX_SHOWN)}`, better)
}

export interface Parameter {
  name: string
  /** In words. */
  type: string
  isRequired: boolean
  description: string | undefined
}

interface Schema {
  type?: string
  enum?: string[]
  anyOf?: Schema[]
  items?: Schema
  default?: unknown
  description?: string
}

/** What an operation takes, for people. */
export function parametersOf(operation: Pick<Operation, 'input'>): Parameter[] {
  const { properties, required } = inputSchema(operation) as {
    properties?: Record<string, Schema>
    required?: string[]
  }
  return Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    type: typeInWords(schema),
    isRequired: required?.includes(name) === true,
    description: schema.description,
  }))
}

function typeInWords({ type, enum: values, anyOf, items }: Schema): string {
  if (anyOf) return anyOf.map(typeInWords).join(', or ')
  if (values) return values.join(' | ')
  if (type === 'array') return `a list of ${items?.type === 'string' ? 'texts' : typeInWords(items ?? {})}`
  return type === 'boolean' ? 'true or false' : type === 'integer' || type === 'number' ? 'a number' : 'a text'
}

const wrong = ({ name }: Pick<Operation, 'name'>, why: string, hint: string | undefined) =>
  new SavepointError('usage', `Cannot call ${name}: ${why}`, { hint, data: { operation: name } })

/** JSON Schema 2020-12, as OpenAPI 3.1 and MCP use it. */
export const inputSchema = ({ input }: Pick<Operation, 'input'>) =>
  z.toJSONSchema(z.strictObject(input.shape), { io: 'input', reused: 'inline' })
export const outputSchema = ({ output }: Pick<Operation, 'output'>) =>
  z.toJSONSchema(output, { io: 'output', reused: 'inline' })
