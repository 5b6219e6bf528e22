/** What becomes of a run that goes on while files are taken back under it. */
import { type Command, Option } from 'commander'

export interface LiveOptions {
  keepRunning?: boolean
  restart?: boolean
}

export const addLiveOptions = (command: Command): Command =>
  command
    .addOption(
      new Option(
        '--keep-running',
        'a live run is held still meanwhile and goes on, instead of being stopped; undo then does not take it back',
      ).conflicts('restart'),
    )
    .option('--restart', 'a live run is stopped, and its command started again on its terminal')
