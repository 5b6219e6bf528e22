/** All verbs. */
import type { Command } from 'commander'
import { register as branches } from './branches.ts'
import { register as bundle } from './bundle.ts'
import { register as changes } from './changes.ts'
import { register as compact } from './compact.ts'
import { register as complete } from './complete.ts'
import { register as completion } from './completion.ts'
import { register as connect } from './connect.ts'
import { register as coverage } from './coverage.ts'
import { register as ctl } from './ctl.ts'
import { register as daemon } from './daemon.ts'
import { register as deleteSnapshots } from './delete.ts'
import { register as demo } from './demo.ts'
import { register as diff } from './diff.ts'
import { register as doctor } from './doctor.ts'
import { register as events } from './events.ts'
import { register as exportSnapshot } from './export.ts'
import { register as gc } from './gc.ts'
import { register as head } from './head.ts'
import { register as history } from './history.ts'
import { register as hook } from './hook.ts'
import { register as importArchive } from './import.ts'
import { register as log } from './log.ts'
import { register as mcp } from './mcp.ts'
import { register as operations } from './operations.ts'
import { register as prune } from './prune.ts'
import { register as purge } from './purge.ts'
import { register as record } from './record.ts'
import { register as redo } from './redo.ts'
import { register as revert } from './revert.ts'
import { register as rollback } from './rollback.ts'
import { register as run } from './run.ts'
import { register as runs } from './runs.ts'
import { register as show } from './show.ts'
import { register as snapshot } from './snapshot.ts'
import { register as snapshots } from './snapshots.ts'
import { register as status } from './status.ts'
import { register as tag } from './tag.ts'
import { register as trace } from './trace.ts'
import { register as trust } from './trust.ts'
import { register as undo } from './undo.ts'
import { register as verify } from './verify.ts'
import { register as why } from './why.ts'

/** By name, in the order in which help lists them. */
export const verbs: Record<string, (program: Command) => void> = {
  ...{ run, record, snapshot, trust },
  ...{ status, snapshots, log, show, diff, changes, history, why, coverage, runs, trace, events, operations },
  ...{ undo, redo, rollback, revert },
  ...{ tag, branches, head, delete: deleteSnapshots, compact, export: exportSnapshot, import: importArchive },
  ...{ prune, gc, verify, purge, doctor },
  ...{ daemon, ctl, mcp, connect, hook },
  ...{ bundle, demo, completion, __complete: complete },
}
/** These ask the program what there is. */
const lookAround = new Set(['completion', '__complete'])

/** `only`: the verb of the command line. To define all of them takes longer than most of them do. */
export function registerVerbs(program: Command, only: string | undefined): void {
  const named = only !== undefined && Object.hasOwn(verbs, only) && !lookAround.has(only)
  for (const register of named ? [verbs[only]!] : Object.values(verbs)) register(program)
}
