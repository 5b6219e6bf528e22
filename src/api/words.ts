/** Parameters of an operation as people write them on a command line: key=value, or one JSON object. */
import { SavepointError } from '../errors/errors.ts'
import type { Operation } from './operation.ts'
import { inputSchema } from './table.ts'

interface Property {
  type?: string
  anyOf?: Property[]
}

/** Not checked: that is for `checkInput`, which says what is wrong. */
export function inputFromWords(operation: Operation, words: readonly string[]): Record<string, unknown> {
  const properties = inputSchema(operation).properties as Record<string, Property>
  // By whatever name: `__proto__` and `constructor` are parameters like any other that does not exist.
  const input: Record<string, unknown> = Object.create(null)
  for (const word of words) {
    if (word.startsWith('{')) {
      Object.assign(input, parsed(word))
      continue
    }
    const [, key, value] = /^([\w-]+)=(.*)$/s.exec(word) ?? []
    if (key === undefined)
      throw new SavepointError('usage', `Cannot read "${word}": it is neither key=value nor a JSON object`, {
        hint: operation.starts
          ? `The command stands after --: savepoint ctl ${operation.name} -- ${word} …`
          : `${operation.name} takes: ${Object.keys(properties).join(', ') || 'nothing'}`,
      })
    const name = key.replaceAll('-', '_')
    input[name] = added(input[name], value!, properties[name])
  }
  return input
}

function parsed(word: string): object {
  try {
    return JSON.parse(word) as object
  } catch (cause) {
    throw new SavepointError('usage', `Cannot read ${word}: ${(cause as Error).message}`, { cause })
  }
}

/** A second value of the same name makes a list. */
function added(before: unknown, text: string, property: Property | undefined): unknown {
  const value = toValue(text, property)
  if (before === undefined) return property?.type === 'array' ? [value] : value
  return [...(Array.isArray(before) ? before : [before]), value]
}

function toValue(text: string, property: Property | undefined): unknown {
  if (property?.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  const isNumber = property?.type === 'integer' || property?.type === 'number'
  return isNumber && text.trim() !== '' && !Number.isNaN(Number(text)) ? Number(text) : text
}
