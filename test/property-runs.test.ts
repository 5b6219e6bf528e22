/**
 * Several runs and a person at work in one directory, beginning and ending in any order, with `undo`, `redo`, `rollback RUN`
 * and snapshots in between: every file is as the model says, after every step. Each has files of its own, in directories of
 * all, so that whose a change is can be told.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RestoreResult, Savepoint } from '../src/index.ts'
import { savepointInShell } from './support/built-cli.ts'
import { LiveAgent } from './support/live-agent.ts'
import { type Done, type Files, RunsModel } from './support/runs-model.ts'
import { Workspace } from './support/workspace.ts'

const RUNS = Number(process.env.SAVEPOINT_TEST_RUNS ?? 5)
/** Always the same stories, unless others are asked for: they are also about time, which no seed repeats. */
const SEED = Number(process.env.SAVEPOINT_TEST_SEED ?? 1)
const SLOTS = ['x', 'y', 'z']
/** `?`: of the slot alone. */
const DIRECTORIES = ['', 'src/', 'd?/', 'src/deep/', 'new/', 'new/er/', 'e?/']

class SlotAgent extends LiveAgent {
  readonly slot: string
  readonly before: Files
  /** How much had been done then. */
  readonly since: number
  /** No other run went on meanwhile. */
  isAlone = true

  constructor(space: Workspace, slot: string, { files, done }: RunsModel) {
    super(space)
    this.slot = slot
    this.before = new Map(files)
    this.since = done.length
  }
}

class Scene {
  readonly space = new Workspace()
  readonly model = new RunsModel(new Map())
  readonly agents: SlotAgent[] = []
  readonly runs: { id: string; slot: string; done: Done }[] = []
  readonly states: { id: string; files: Files }[] = []
  readonly told: string[] = []
  savepoint!: Savepoint
  private versions = 0

  async begin(): Promise<void> {
    for (const slot of ['q', ...SLOTS]) for (const dir of ['', 'src/', 'src/deep/']) this.byHand(`${dir}${slot}1`)
    this.savepoint = await this.space.open()
  }

  async close(): Promise<void> {
    for (const agent of this.agents.splice(0)) await agent.end()
    this.space.remove()
  }

  byHand(path: string): void {
    const content = this.next()
    this.space.write(path, content)
    this.model.set(path, content)
  }

  next(): string {
    return `version ${++this.versions}`
  }

  /** What can be done now, by name; the numbers choose among what each of them can be done to. */
  async step(kind: number, which: number, how: number): Promise<void> {
    const pick = <T>(from: readonly T[]): T => from[which % from.length]!
    const free = SLOTS.filter(slot => !this.agents.some(agent => agent.slot === slot))
    const { model, savepoint } = this
    /** What a run that goes on works with is not gone back to from under it. */
    const isFree = ({ changed }: Done) =>
      ![...changed.keys()].some(path => this.agents.some(({ slot }) => path.includes(slot)))
    const steps: [boolean, string, () => Promise<unknown> | unknown][] = [
      [free.length > 0, 'begin', () => this.beginRun(pick(free))],
      [this.agents.length > 0, 'work', () => this.work(pick(this.agents), how)],
      [this.agents.length > 0, 'work', () => this.work(pick(this.agents), how + 1)],
      [this.agents.length > 0, 'end', () => this.endRun(pick(this.agents))],
      [true, 'person', () => this.person(pick(['q', ...free]), how)],
      [this.agents.length > 0, 'undo of what goes on', () => this.undoLive()],
      [this.agents.length > 0, 'run inside', () => this.workInside(pick(this.agents), how)],
      [this.agents.length === 1 && this.agents[0]!.isAlone, 'kill and undo', () => this.undoKilled()],
      [
        // What was done before a run that goes on is not what `undo` could mean.
        model.next !== undefined &&
          isFree(model.next) &&
          model.done.indexOf(model.next) >= (this.agents.at(-1)?.since ?? 0),
        `undo of ${model.next?.what}`,
        async () => this.same((await savepoint.undo({ keepRunning: true })).restore, model.undo()),
      ],
      [
        model.undone !== undefined && isFree(model.undone),
        `redo of ${model.undone?.what}`,
        async () => this.same((await savepoint.redo()).restore, model.redo()),
      ],
      [
        this.runs.length > 0 && isFree(pick(this.runs).done),
        'rollback',
        async () => {
          const { id, done } = pick(this.runs)
          this.told.push(`  of ${done.what}`)
          const left = model.rollback(done)
          const rolled = savepoint.rollback(id, { keepRunning: true })
          const refusal = { code: 'operation.none' }
          if (left === 'refused') await expect(rolled).rejects.toMatchObject(refusal)
          else if (left === 'refused or not') await rolled.catch(error => expect(error).toMatchObject(refusal))
          else this.same(await rolled, left)
        },
      ],
      [true, 'snapshot', () => this.snapshot()],
      [
        this.agents.length === 0 && this.states.length > 0,
        'whole rollback',
        async () => {
          const { id, files } = pick(this.states)
          this.told.push(`  to ${id}`)
          this.same(await savepoint.rollback(id), [])
          model.goTo(id, files)
        },
      ],
    ]
    const possible = steps.filter(([isPossible]) => isPossible)
    const [, name, work] = possible[kind % possible.length]!
    this.told.push(name)
    try {
      await work()
    } catch (cause) {
      throw new Error(`${(cause as Error).message}\n${this.told.join('\n')}`, { cause })
    }
    expect(this.live(), this.told.join('\n')).toEqual(new Map([...model.files].sort()))
  }

  private async beginRun(slot: string): Promise<void> {
    const agent = new SlotAgent(this.space, slot, this.model)
    await agent.begin()
    this.told.push(`  ${agent.id} (${slot})`)
    this.agents.push(agent)
    if (this.agents.length > 1) for (const each of this.agents) each.isAlone = false
  }

  private async work(agent: SlotAgent, how: number): Promise<void> {
    const command = this.change(agent.slot, how)
    this.told.push(`  ${agent.id}: ${command}`)
    await agent.do(command)
  }

  private async workInside(agent: SlotAgent, how: number): Promise<void> {
    const before = new Map(this.model.files)
    const command = this.change(agent.slot, how)
    this.told.push(`  ${agent.id}: run -- ${command}`)
    const known = new Set(this.savepoint.runs().map(({ id }) => id))
    await agent.do(`${savepointInShell} run -q -- sh -c "${command}"`)
    const inner = this.savepoint.runs().find(({ id }) => !known.has(id))!
    this.told.push(`  ${inner.id}`)
    const done = this.model.end(inner.id, before, path => path.includes(agent.slot), agent.id)
    // A run inside of another one has no trace of its own: beside a third one it cannot be told what it did.
    if (this.agents.length === 1) this.runs.push({ id: inner.id, slot: agent.slot, done })
  }

  private async undoKilled(): Promise<void> {
    const [agent] = this.agents.splice(0) as [SlotAgent]
    await agent.kill()
    this.told.push(`  ${agent.id}`)
    const { restore } = await this.savepoint.undo()
    // What somebody else removed comes back without a word: nothing is lost by that.
    const named = new Set([...restore!.mixed, ...[...agent.before.keys()].filter(path => !this.model.files.has(path))])
    this.model.undoKilled(
      agent.id,
      agent.before,
      path => path.includes(agent.slot),
      path => named.has(path),
    )
    this.runs.push({ id: agent.id, slot: agent.slot, done: this.model.done.at(-1)! })
  }

  private person(slot: string, how: number): void {
    const command = this.change(slot, how)
    this.told.push(`  ${command}`)
    this.space.sh(command)
  }

  /** Changes a file of the slot, in the model; the command that does it. */
  private change(slot: string, how: number): string {
    const { model } = this
    const path = `${DIRECTORIES[how % DIRECTORIES.length]!.replace('?', slot)}${slot}${how % 3}`
    const there = [...model.files.keys()].filter(file => file.includes(slot))
    const some = there[how % there.length]
    const parent = path.slice(0, path.lastIndexOf('/') + 1)
    const inParent = parent === '' ? '' : `mkdir -p ${parent}; `
    const content = this.next()
    const kind = some === undefined ? 0 : Math.floor(how / 15) % 6
    if (kind === 5) {
      const [from, to] = how % 2 === 0 ? ['d', 'e'] : ['e', 'd']
      const own = there.filter(file => file.startsWith(`${from}${slot}/`))
      const isFree = !there.some(file => file.startsWith(`${to}${slot}/`))
      if (own.length > 0 && isFree) {
        for (const file of own) {
          model.set(`${to}${file.slice(1)}`, model.files.get(file))
          model.set(file, undefined)
        }
        return `rmdir ${to}${slot} 2> /dev/null || :; mv ${from}${slot} ${to}${slot}`
      }
    }
    if (kind === 1) {
      model.set(some!, undefined)
      return `rm ${some}`
    }
    if (kind === 2 && some !== path) {
      model.set(path, model.files.get(some!))
      model.set(some!, undefined)
      return `${inParent}mv ${some} ${path}`
    }
    if (kind === 3) {
      model.set(some!, `${model.files.get(some!)} and ${content}`)
      return `printf %s ' and ${content}' >> ${some}`
    }
    if (kind === 4) {
      model.set(path, content)
      return `${inParent}printf %s '${content}' > ${path}.tmp; mv ${path}.tmp ${path}`
    }
    model.set(path, content)
    return `${inParent}printf %s '${content}' > ${path}`
  }

  private async endRun(agent: SlotAgent): Promise<void> {
    await agent.end()
    this.ended(agent)
  }

  private ended(agent: SlotAgent): void {
    this.agents.splice(this.agents.indexOf(agent), 1)
    const done = this.model.end(agent.id, agent.before, path => path.includes(agent.slot))
    this.told.push(`  ${agent.id}`)
    this.runs.push({ id: agent.id, slot: agent.slot, done })
  }

  /** The newest of them is stopped and taken back. */
  private async undoLive(): Promise<void> {
    const agent = this.agents.at(-1)!
    const { restore } = await this.savepoint.undo()
    await agent.over
    this.ended(agent)
    this.same(restore, this.model.undo())
  }

  private async snapshot(): Promise<void> {
    const { id } = await this.savepoint.snapshot()
    this.states.push({ id, files: new Map(this.model.files) })
  }

  /** What is left alone is what the model says. */
  private same(restore: RestoreResult | undefined, left: string[]): void {
    const conflicts = restore!.leftAlone.filter(({ why }) => why !== 'outside').map(({ path }) => path)
    expect(conflicts.sort()).toEqual(left)
  }

  private live(): Files {
    const found = readdirSync(this.space.dir, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    const paths = found.map(({ parentPath, name }) => join(parentPath, name).slice(this.space.dir.length + 1))
    return new Map(paths.sort().map(path => [path, readFileSync(this.space.at(path), 'utf8')]))
  }
}

test('every file is as the model says, after every step', async () => {
  const step = fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(1000))
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async steps => {
      const scene = new Scene()
      try {
        await scene.begin()
        for (const [kind, which, how] of steps) await scene.step(kind, which, how)
      } finally {
        await scene.close()
      }
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: process.env.SAVEPOINT_TEST_SHRINK === undefined },
  )
}, 3_600_000)
