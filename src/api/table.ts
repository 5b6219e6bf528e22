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
export function checkInput(operation: Operation, input: unknown): Record<string, unknown> {
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
  const [issue] = result.error.issues
  const where = issue!.path.join('.')
  throw wrong(operation, `${where ? `"${where}": ` : ''}${issue!.message}`, undefined)
}

const wrong = ({ name }: Operation, why: string, hint: string | undefined) =>
  new SavepointError('usage', `Cannot call ${name}: ${why}`, { hint, data: { operation: name } })

/** JSON Schema 2020-12, as OpenAPI 3.1 and MCP use it. */
export const inputSchema = ({ input }: Operation) =>
  z.toJSONSchema(z.strictObject(input.shape), { io: 'input', reused: 'inline' })
export const outputSchema = ({ output }: Operation) => z.toJSONSchema(output, { io: 'output', reused: 'inline' })
