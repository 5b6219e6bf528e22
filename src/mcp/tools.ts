/** All tools, in the order in which they are listed. */
import { z } from 'zod'
import { findOperation, inputSchema, outputSchema } from '../api/table.ts'
import { pageInput, pageOutput } from './page.ts'
import { portableSchema } from './portable-schema.ts'
import type { Tool } from './tool.ts'
import { changeTools } from './tools-change.ts'
import { lookTools } from './tools-look.ts'
import { showTools } from './tools-show.ts'
import { traceTools } from './tools-trace.ts'

export const tools: readonly Tool[] = [...lookTools, ...showTools, ...changeTools, ...traceTools]

const byName = new Map(tools.map(tool => [tool.name, tool]))
export const toolNames = (): string[] => [...byName.keys()]
export const findTool = (name: string): Tool | undefined => byName.get(name)

/** Its own parameters, and those of a page where it has a list. */
export const fullInput = ({ input, lists }: Tool): z.ZodObject => (lists ? input.extend(pageInput) : input)

/** What its structured answer looks like. */
function fullOutput({ facts, lists = {} }: Tool): z.ZodObject {
  const arrays = Object.entries(lists).map(([key, item]) => [key, z.array(item)] as const)
  const parts = arrays.map(([key, array]) => [key, arrays.length === 1 ? array : array.optional()])
  return facts.extend({
    ...Object.fromEntries(parts),
    ...(arrays.length > 0 ? pageOutput : {}),
    notices: z.array(z.string()).describe('what else the user should know'),
  })
}

/** As `tools/list` shows it; the hints follow from what the operation does. */
export function describeTool(tool: Tool) {
  const { effect, isIdempotent } = findOperation(tool.operation)
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: portableSchema(inputSchema({ input: fullInput(tool) })),
    outputSchema: portableSchema(outputSchema({ output: fullOutput(tool) })),
    annotations: {
      title: tool.title,
      readOnlyHint: effect === 'read',
      destructiveHint: effect === 'destructive',
      idempotentHint: effect === 'read' || isIdempotent === true,
      openWorldHint: false,
    },
  }
}
