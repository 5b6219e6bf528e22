/** Parameters of an operation as addresses have them: texts, and a list as a parameter that is repeated. */
import type { Operation } from './operation.ts'
import { inputSchema } from './table.ts'

/** Texts become what the parameter is; what does not fit stays, and is refused with its name. */
export const fromQuery = (operation: Operation, queries: Record<string, string[]>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(queries).map(([name, values]) => [name, fromTexts(operation, name, values)]))

function fromTexts(operation: Operation, name: string, values: string[]): unknown {
  const { shape } = operation.input
  // One that is given twice is refused, unless it is a list.
  if (!Object.hasOwn(shape, name) || (values.length > 1 && !isList(operation, name))) return values
  const [first] = values
  const read = (value: unknown) => shape[name]!.safeParse(value).success
  const candidates = [values, first === 'true' ? true : first === 'false' ? false : Number(first)]
  return read(first) ? first : (candidates.find(read) ?? (isList(operation, name) ? values : first))
}

/** What is wrong with an element of a list is said of that. */
const isList = (operation: Operation, name: string): boolean =>
  (inputSchema(operation).properties as Record<string, { type?: string }>)[name]?.type === 'array'
