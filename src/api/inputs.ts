/** Parameters that several operations take. */
import { z } from 'zod'
import { logEventKinds } from '../model/trace.ts'

export const ref = z.string().min(1).describe('id, unique prefix, tag or label of a snapshot; HEAD is the present one')
export const runRef = z.string().min(1).describe('id of a run')
export const path = z.string().min(1).describe('relative to the target; bytes that are not UTF-8 escaped as \\xNN')
export const paths = z.array(path).min(1)
export const limit = z.int().positive()
export const kept = z.boolean().optional().describe('also what exclude.keep names (.env), which may be secret')

/** Of the log of events: what both who lists it and who follows it can ask for. */
const kinds = [...logEventKinds, 'all'] as const
export const eventKinds = z.array(z.enum(kinds)).min(1).optional().describe('only these; default: all but command')

export const dryRun = z.boolean().optional().describe('only say what would change')
export const all = z.boolean().optional().describe('the whole target, not only the subdirectory that one is in')

/** What becomes of a run that is at work. */
export const live = {
  keep_running: z.boolean().optional().describe('a live run goes on, and is only held still meanwhile'),
  restart: z.boolean().optional().describe("a live run's command is started again afterwards"),
}
