/** JSON Schema as it comes from zod, in the form that most clients of MCP understand, and without what tells a model nothing. */

type Node = Record<string, unknown>

/** The dialect is the one that the protocol assumes, and need not be named. */
export const portableSchema = ({ $schema: _, ...schema }: Node): { type: 'object' } =>
  JSON.parse(JSON.stringify(schema), (_key, value) => (isNode(value) ? portable(value) : value))

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)

/** One type at a time: clients that know one `type` only (Gemini's) refuse a list of them. */
function portable(node: Node): Node {
  const { type, description, default: value, ...rest } = withoutIdleLimits(node)
  if (!Array.isArray(type)) return withoutIdleLimits(node)
  const anyOf = type.map(each => (each === 'null' ? { type: each } : { type: each, ...rest }))
  return {
    ...(description === undefined ? {} : { description }),
    ...(value === undefined ? {} : { default: value }),
    anyOf,
  }
}

/** Limits that no number reaches. A property of that name is a schema, not a number. */
const withoutIdleLimits = (node: Node): Node =>
  Object.fromEntries(
    Object.entries(node).filter(
      ([key, value]) =>
        !/^(minimum|maximum)$/.test(key) || typeof value !== 'number' || Math.abs(value) < Number.MAX_SAFE_INTEGER,
    ),
  )
