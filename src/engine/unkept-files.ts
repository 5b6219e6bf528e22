/** What a run destroyed between two snapshots, and could not be kept: for want of room, or because it is too large to be copied. */
import { formatCount, plural } from '../model/format.ts'
import { isWithin, type Raw, rawFromBytes, showPath } from '../model/raw-path.ts'
import { statDir, withDir } from '../targets/dir/dir-target.ts'
import { Exclusions } from '../targets/dir/explain-exclusion.ts'
import { excludeConfig } from './capture-live.ts'
import type { Context } from './context.ts'

const MAX_PATHS = 1000
const LISTED = 5

export class UnkeptFiles {
  private readonly ctx: Context
  private readonly paths = new Set<Raw>()

  constructor(ctx: Context) {
    this.ctx = ctx
  }

  /** Absolute. */
  add(path: Raw): void {
    if (this.paths.size < MAX_PATHS) this.paths.add(path)
  }

  /** Once. What rules leave out is not missed. */
  async say(): Promise<void> {
    const paths = await this.wanted()
    this.paths.clear()
    if (paths.length === 0) return
    const names = paths.slice(0, LISTED).map(showPath).join(', ')
    const more = paths.length > LISTED ? ` and ${formatCount(paths.length - LISTED)} more` : ''
    this.ctx.warn(
      `${plural('file', paths.length)} that the run replaced or removed could not be kept, and may be in no snapshot: ${names}${more}`,
    )
  }

  private async wanted(): Promise<Raw[]> {
    const { ctx } = this
    const target = rawFromBytes(ctx.targetPath)
    const inside = [...this.paths].filter(path => isWithin(path, target)).map(path => path.slice(target.length + 1))
    if (inside.length === 0 || !statDir(ctx.targetPath)) return inside
    return withDir(ctx.targetPath, async root => {
      const rules = await Exclusions.open({ root, rootPath: ctx.targetPath, exclude: excludeConfig(ctx), env: ctx.env })
      const wanted: Raw[] = []
      for (const path of inside) if (!(await rules.of(path, { isDirectory: false, size: 0 }))) wanted.push(path)
      return wanted
    })
  }
}
