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
  if (result.success) return withoutNull(operation, result.data)
  throw notFitting(operation, input, result.error.issues[0]!)
}

/** No path, argument or name can have one: wherever it went, it would be an error of ours. */
function withoutNull(operation: Pick<Operation, 'name'>, input: Record<string, unknown>): Record<string, unknown> {
  const name = Object.keys(input).find(each => [input[each]].flat().some(text => String(text).includes('\0')))
  if (name === undefined) return input
  throw wrong(operation, `"${name}" has a null byte in it`, 'No name, path or argument can have one')
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
  // Which element of a list it is can be seen by its value.
  const where = [name, ...inner.filter(key => typeof key === 'string')].join('.')
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
  minItems?: number
  minLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
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

function typeInWords(schema: Schema): string {
  const { type, enum: values, anyOf, items, minItems = 0 } = schema
  if (anyOf) return anyOf.map(typeInWords).join(', or ')
  if (values) return values.join(' | ')
  if (type === 'array') {
    const of = items?.enum
      ? `: ${items.enum.join(', ')}`
      : ` of ${items?.type === 'string' ? 'texts' : typeInWords(items ?? {})}`
    return `a list${of}${minItems > 1 ? `, ${minItems} or more` : ''}`
  }
  if (type === 'boolean') return 'true or false'
  if (type === 'integer' || type === 'number') return numberInWords(schema)
  return 'a text'
}

/** What JSON can hold anyway is no limit that anybody needs to know. */
function numberInWords({ type, minimum, maximum, exclusiveMinimum }: Schema): string {
  const named = type === 'integer' ? 'a whole number' : 'a number'
  const least = exclusiveMinimum === undefined ? minimum : exclusiveMinimum + 1
  const from = least !== undefined && least > Number.MIN_SAFE_INTEGER ? ` from ${least}` : ''
  const to = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? ` to ${maximum}` : from && ' on'
  return `${named}${from}${to}`
}

const wrong = ({ name }: Pick<Operation, 'name'>, why: string, hint: string | undefined) =>
  new SavepointError('usage', `Cannot call ${name}: ${why}`, { hint, data: { operation: name } })

/** JSON Schema 2020-12, as OpenAPI 3.1 and MCP use it. */
export const inputSchema = ({ input }: Pick<Operation, 'input'>) =>
  z.toJSONSchema(z.strictObject(input.shape), { io: 'input', reused: 'inline' })
export const outputSchema = ({ output }: Pick<Operation, 'output'>) =>
  z.toJSONSchema(output, { io: 'output', reused: 'inline' })
