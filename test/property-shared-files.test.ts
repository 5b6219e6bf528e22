/**
 * Several runs and a person at work on the same files. Whose a change is cannot always be told then; but what `undo`, `redo` and
 * `rollback RUN` must never do can: touch what the run has not touched, or what another run or a person changed after it; lose
 * what is there now; or, undone and redone, leave anything else than what was there.
 */
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RestoreResult, Savepoint, SavepointError } from '../src/index.ts'
import { savepointInShell } from './support/built-cli.ts'
import { LiveAgent } from './support/live-agent.ts'
import { differences, imageOf } from './support/tree-image.ts'
import { Workspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 3)
/** Always the same stories, unless others are asked for: they are also about time, which no seed repeats. */
const SEED = Number(process.env.SAVEPOINT_TEST_SEED ?? 1)
const MAX_AGENTS = 3
const FILES = ['a', 'b', 'src/a', 'src/b', 'src/deep/a', 'lib/a', 'lib/b']
const DIRECTORIES = ['src', 'src/deep', 'lib', 'new']
const ARE_OLDER = 'find . -exec touch -h -d 2020-01-01 {} +'

type Image = Map<string, string>
/** Who changed a path, in the order of steps, and to what: a run, `person`, or `restore`. */
type Writers = { who: string; at: number; line: string | undefined }[]

class Scene {
  readonly space = new Workspace()
  readonly agents: { agent: LiveAgent; begun: number }[] = []
  readonly ended: { id: string; begun: number; at: number; left: Image }[] = []
  readonly writers = new Map<string, Writers>()
  /** What a command names it may only have tried to change; calls are told before they are carried out. */
  readonly tried = new Map<string, string>()
  readonly told: string[] = []
  savepoint!: Savepoint
  /** What a person has written; that which a run then moved out of the target, or destroyed; and all paths there ever were. */
  private readonly byHand = new Set<string>()
  private readonly takenOut = new Set<string>()
  private readonly destroyed = new Map<string, string>()
  private readonly paths = new Set<string>()
  private at = 0

  async begin(): Promise<void> {
    for (const path of FILES) this.space.write(path, `${path}\n`)
    this.space.sh(ARE_OLDER)
    this.savepoint = await this.space.open()
  }

  /** What a person wrote and a run destroyed is in some snapshot. */
  async nothingIsLost(): Promise<void> {
    for (const { agent } of this.agents.splice(0)) await agent.end()
    const kept = new Set<string>()
    for (const { id } of this.savepoint.snapshots())
      for (const path of this.paths) {
        try {
          kept.add(this.savepoint.read(id, path).toString())
        } catch {}
      }
    const lost = [...this.destroyed].filter(([content]) => !kept.has(content))
    expect(lost, this.told.join('\n')).toEqual([])
  }

  async close(): Promise<void> {
    for (const { agent } of this.agents.splice(0)) await agent.end()
    this.space.remove()
  }

  async step(kind: number, which: number, how: number): Promise<void> {
    this.at++
    const pick = <T>(from: readonly T[]): T => from[which % from.length]!
    const hasAgents = this.agents.length > 0
    const steps: [boolean, () => Promise<unknown>][] = [
      [this.agents.length < MAX_AGENTS, () => this.beginRun()],
      ...Array.from(
        { length: 4 },
        () => [hasAgents, () => this.work(pick(this.agents).agent, how)] as [boolean, () => Promise<void>],
      ),
      [hasAgents, () => this.endRun(pick(this.agents))],
      [true, () => this.person(how)],
      [this.ended.length > 0, () => this.walk('undo')],
      [this.ended.length > 0, () => this.walk('redo')],
      [this.ended.length > 0, () => this.rollback(pick(this.ended).id)],
    ]
    const possible = steps.filter(([isPossible]) => isPossible)
    try {
      await possible[kind % possible.length]![1]()
    } catch (cause) {
      throw new Error(`${(cause as Error).message}\n${this.told.join('\n')}`, { cause })
    }
  }

  private async beginRun(): Promise<void> {
    const agent = new LiveAgent(this.space)
    await agent.begin()
    this.told.push(`begin ${agent.id}`)
    this.agents.push({ agent, begun: this.at })
  }

  private async endRun(ending: { agent: LiveAgent; begun: number }): Promise<void> {
    this.agents.splice(this.agents.indexOf(ending), 1)
    await ending.agent.end()
    this.told.push(`end ${ending.agent.id}`)
    this.ended.push({ id: ending.agent.id, begun: ending.begun, at: this.at, left: this.image() })
  }

  private async work(agent: LiveAgent, how: number): Promise<void> {
    await this.changing(agent.id, how, command => agent.do(command))
  }

  private async person(how: number): Promise<void> {
    // What somebody else does within a second of the run is not told from what the run does (edits-meanwhile.ts).
    if (this.agents.length > 0) await pause(1100)
    await this.changing('person', how, async command => void this.space.sh(command))
  }

  private async changing(who: string, how: number, work: (command: string) => Promise<void>): Promise<void> {
    const command = `{ ${this.command(how)}; } 2> /dev/null || :`
    this.told.push(`  ${who}: ${command}`)
    this.tried.set(who, `${this.tried.get(who)} ${command}`)
    const [before, inside] = [this.image(), this.inside()]
    await work(command)
    this.note(who, before, this.image())
    this.follow(who, command, inside)
  }

  private follow(who: string, command: string, before: Set<string>): void {
    const [inside, outside] = [this.inside(), this.outside()]
    if (who === 'person') for (const content of inside) if (!before.has(content)) this.byHand.add(content)
    for (const content of this.byHand) {
      if (inside.has(content) || !(before.has(content) || this.takenOut.has(content))) continue
      if (outside.has(content)) this.takenOut.add(content)
      else if (who !== 'person') this.destroyed.set(content, command)
      // What somebody takes out or removes is their business.
      if (who === 'person' && before.has(content)) this.byHand.delete(content)
      if (!outside.has(content)) this.takenOut.delete(content)
    }
  }

  private inside(): Set<string> {
    for (const path of this.image().keys()) this.paths.add(path)
    return new Set(filesBelow(this.space.dir))
  }

  private outside(): Set<string> {
    const names = readdirSync(join(this.space.dir, '..')).filter(name => name.startsWith('out-'))
    return new Set(names.flatMap(name => filesBelow(this.space.at(`../${name}`))))
  }

  private command(how: number): string {
    const [file, other] = [how, Math.floor(how / 7)].map(at => FILES[at % FILES.length]!)
    const [directory, to] = [how, Math.floor(how / 4)].map(at => DIRECTORIES[at % DIRECTORIES.length]!)
    const kinds = [
      `mkdir -p $(dirname ${file}); echo ${this.at} > ${file}`,
      `echo ${this.at} >> ${file}`,
      `mkdir -p $(dirname ${file}); echo ${this.at} > ${file}.tmp; mv ${file}.tmp ${file}`,
      `rm ${file}`,
      `mkdir -p $(dirname ${other}); mv ${file} ${other}`,
      `rm -rf ${directory}`,
      `mv ${directory} ${to}`,
      `chmod $(( 600 + ${this.at} % 2 * 44 )) ${file}`,
      `mkdir -p ${directory}`,
      `rm -rf ${file}; ln -s target-${this.at} ${file}`,
      `rm -rf ${file}; mkdir ${file}; echo ${this.at} > ${file}/inner`,
      // Fails where something is in it.
      `mv -T ${directory} ${to}`,
      `mv -T ${directory} swapped && mv -T ${to} ${directory} && mv -T swapped ${to}`,
      `mv ${directory} ../out-${this.at}`,
      `mv -T "$(ls -d ../out-* | head -n 1)" ${to}`,
      `rm -rf "$(ls -d ../out-* | head -n 1)"`,
      `mkdir -p $(dirname ${other}); ln ${file} ${other}`,
      // Only in a run; a person has none.
      `[ -n "$SAVEPOINT_RUN" ] && ${savepointInShell} rollback -q $SAVEPOINT_RUN > /dev/null`,
      `[ -n "$SAVEPOINT_RUN" ] && ${savepointInShell} run -q -- mv -T ${directory} ${to} && ${savepointInShell} undo -q > /dev/null`,
    ]
    return kinds[Math.floor(how / 49) % kinds.length]!
  }

  private note(who: string, before: Image, after: Image): void {
    for (const path of changedPaths(before, after)) {
      const writers = this.writers.get(path) ?? []
      writers.push({ who, at: this.at, line: after.get(path) })
      this.writers.set(path, writers)
    }
  }

  private async walk(direction: 'undo' | 'redo'): Promise<void> {
    const before = this.image()
    const contents = this.contents()
    const done = await this.savepoint[direction](direction === 'undo' ? { keepRunning: true } : undefined).catch(
      error => {
        if (error.code === 'operation.none') return undefined
        throw error
      },
    )
    if (!done) return
    const { operation, restore } = done
    this.told.push(`${direction} ${operation.summary} (${operation.state})`)
    const after = this.image()
    if (operation.kind === 'run')
      this.isRight(operation.detail.run as string, before, after, direction === 'undo' ? restore : undefined)
    this.isSafe(restore, contents)
    this.note('restore', before, after)
    if (direction === 'redo' || operation.state !== 'undone') return
    // And again, and again: nobody has done anything meanwhile.
    await this.savepoint.redo()
    expect(differences(before, this.image()), 'redo is not the reverse').toEqual([])
    await this.savepoint.undo({ keepRunning: true })
    expect(differences(after, this.image()), 'undo again is another').toEqual([])
  }

  private async rollback(id: string): Promise<void> {
    this.told.push(`rollback ${id}`)
    const before = this.image()
    const contents = this.contents()
    const result = await this.savepoint.rollback(id, { keepRunning: true }).catch((error: SavepointError) => {
      // Undone already: nothing is taken back twice.
      if (error.code !== 'operation.none') throw error
      expect(differences(before, this.image()), 'refused, and not as it was').toEqual([])
    })
    if (!result) return
    const after = this.image()
    this.isRight(id, before, after, result)
    this.isSafe(result, contents)
    this.note('restore', before, after)
  }

  /** Only what the run touched, and only where nobody else did since it began; where a person did meanwhile, it is named. */
  private isRight(run: string, before: Image, after: Image, taken: RestoreResult | undefined): void {
    const ended = this.ended.find(({ id }) => id === run)
    // One inside of another, of which is not told what was its.
    if (!ended) return
    const { begun, at, left } = ended
    for (const path of changedPaths(before, after)) {
      const writers = this.writers.get(path) ?? []
      const since = writers.filter(writer => writer.at >= begun)
      if (since.some(({ who }) => who === 'restore')) continue
      // What had been taken out of a directory before the run moved that away cannot be told: it comes back, too.
      if (!before.has(path) && this.tried.get(run)?.includes('../out')) continue
      expect(
        since.some(({ who }) => who === run) || this.hasTried(run, path),
        `${path} is not of ${run}: ${JSON.stringify(writers)}`,
      ).toBe(true)
      // What only comes back takes nothing from anybody; and who was undone has nothing to lose.
      if (!before.has(path)) continue
      // Nor who has put it as the run had made it.
      if (since.findLast(({ who }) => who === run)?.line === before.get(path)) continue
      const undone = new Set(
        this.savepoint.operations().flatMap(({ state, detail }) => (state === 'done' ? [] : detail.run)),
      )
      // Of what is as the run has left it again, nobody can tell that it was something else.
      const isAsLeft = before.get(path) === left.get(path)
      const others = since.filter(
        ({ who, at: then }) => who !== run && !undone.has(who) && (then > at ? !isAsLeft : who !== 'person'),
      )
      if (taken) expect(others, `${path} is not of ${run} alone`).toEqual([])
      const then = since.filter(({ at: step }) => step <= at)
      const [last, former] = [then.at(-1), then.at(-2)]
      // Of a mode alone no time tells who set it.
      const isByHand = last?.who === 'person' && withoutMode(last.line) !== withoutMode(former?.line)
      if (taken && isByHand) expect(taken.mixed, `${path} may be of a person`).toContain(path)
    }
  }

  /** What was moved and brought back again inside of the run was touched with the directory. */
  private hasTried(run: string, path: string): boolean {
    const tried = this.tried.get(run) ?? ''
    const words = tried.split(/[ ;]+/)
    return words.includes(path) || (tried.includes(' undo ') && words.some(word => path.startsWith(`${word}/`)))
  }

  /** What is not there any more is in the snapshot of the state before. */
  private isSafe(restore: RestoreResult | undefined, contents: Map<string, string>): void {
    for (const [path, content] of contents) {
      if (this.space.read(path) === content) continue
      const { safety } = restore!
      expect(safety && this.savepoint.read(safety.id, path).toString(), `${path} is lost`).toBe(content)
    }
  }

  private image(): Image {
    return imageOf(this.space.dir)
  }

  private contents(): Map<string, string> {
    const files = [...this.image()].filter(([, line]) => line.startsWith('file ')).map(([path]) => path)
    return new Map(files.map(path => [path, readFileSync(this.space.at(path), 'utf8')]))
  }
}

function filesBelow(path: string): string[] {
  const stat = lstatSync(path)
  if (stat.isFile()) return [readFileSync(path, 'utf8')]
  return stat.isDirectory() ? readdirSync(path).flatMap(name => filesBelow(join(path, name))) : []
}

const withoutMode = (line: string | undefined) => line?.split(' ').toSpliced(1, 1).join(' ')

/** But for directories: they come and go with what is in them. */
const changedPaths = (before: Image, after: Image): string[] => {
  const isDirectory = (line: string | undefined) => line === undefined || line.startsWith('dir ')
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    path => before.get(path) !== after.get(path) && !(isDirectory(before.get(path)) && isDirectory(after.get(path))),
  )
}

test('nothing of others goes, nothing is lost, and undone and redone it is as it was', async () => {
  const step = fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(100_000))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 50 }), async steps => {
      const scene = new Scene()
      try {
        await scene.begin()
        for (const [kind, which, how] of steps) await scene.step(kind, which, how)
        await scene.nothingIsLost()
      } finally {
        await scene.close()
      }
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: process.env.SAVEPOINT_TEST_SHRINK === undefined },
  )
}, 3_600_000)
