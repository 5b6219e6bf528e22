import { TracedCommand } from '../../src/tracers/helper.ts'
import type { TracedOptions } from '../../src/tracers/traced-options.ts'
import type { Workspace } from './workspace.ts'

/** A command under the helper alone, which nobody listens to but for what `options` say. */
export const startTraced = (
  space: Workspace,
  options: Pick<TracedOptions, 'driver' | 'command'> & Partial<TracedOptions>,
): TracedCommand =>
  new TracedCommand({
    cwd: space.dir,
    env: space.env,
    inherited: { descriptors: [], ignoredSignals: [] },
    allowIoUring: false,
    protect: [space.home],
    watch: undefined,
    hold: undefined,
    spool: undefined,
    onEvent: () => {},
    onBatch: () => {},
    onHelperDied: () => {},
    onStop: () => {},
    ...options,
  })
