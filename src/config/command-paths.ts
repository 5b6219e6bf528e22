/** Commands that a configuration names by a path: that is written as seen from the protected directory, wherever they are called. */
import { patternIn } from '../model/command-pattern.ts'
import { rawFromBytes, rawToText } from '../model/raw-path.ts'
import type { Config } from './config.ts'

export function withCommandPaths(config: Config, targetDir: string | Buffer): Config {
  const directory = rawToText(rawFromBytes(Buffer.from(targetDir)))
  const { triggers } = config.snapshots
  const seen = (patterns: string[]) => patterns.map(pattern => patternIn(directory, pattern))
  const lists = {
    build_commands: seen(triggers.build_commands),
    test_commands: seen(triggers.test_commands),
    guard_commands: seen(triggers.guard_commands),
  }
  return { ...config, snapshots: { ...config.snapshots, triggers: { ...triggers, ...lists } } }
}
