/** The log of events has one order, whatever happens in which order and whatever the clock says; pages of it fit together. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeOperation, makeSnapshot } from '../model/fixture-snapshot.ts'
import type { Execution, LogEventKind } from '../model/trace.ts'
import type { NewEvent } from '../timeline/event-rows.ts'
import { TimelineDb } from '../timeline/timeline-db.ts'
import type { Context } from './context.ts'
import { events } from './events.ts'
import type { LogEvent } from './results.ts'
import type { EventsOptions } from './savepoint.ts'
import { subscribe } from './subscribe.ts'

let directory: string
let db: TimelineDb
let ctx: Context
beforeEach(() => start())
afterEach(() => end())

const NOW = 1_000_000_000

/** A timeline in which nothing has happened. */
function start(): void {
  directory = mkdtempSync(join(tmpdir(), 'savepoint-events-'))
  db = new TimelineDb(join(directory, 'timeline.sqlite'))
  ctx = { db, now: () => NOW, timelineDir: directory } as unknown as Context
}

function end(): void {
  db.close()
  rmSync(directory, { recursive: true })
}

function restart(): void {
  end()
  start()
}

type Step = { do: 'file' | 'snapshot' | 'operation' | 'run' | 'batch'; at: number; run: boolean }
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom('file', 'snapshot', 'operation', 'run', 'batch'),
  at: fc.integer({ min: NOW - 50_000, max: NOW }),
  run: fc.boolean(),
})

/** What is done, and what the log is to say of it. */
class Story {
  /** `kind action what`, in order. */
  readonly told: { kind: LogEventKind; text: string; run: string | undefined }[] = []
  private run: string | undefined
  private count = 0

  take({ do: what, at, run }: Step): void {
    const of = run ? this.run : undefined
    if (what === 'file') this.files([fileAt(at, `f${++this.count}`, of)])
    else if (what === 'snapshot') {
      const { id } = db.addSnapshot(makeSnapshot('', { createdAt: at, run: of }))
      this.tell('snapshot', `taken ${id}`, of)
    } else if (what === 'operation') {
      const { id } = db.addOperation({ ...makeOperation({ at, kind: 'tag' }), by: of })
      this.tell('operation', `tag ${id}`, of)
    } else if (what === 'run') this.changeRun(at)
    else if (this.run !== undefined) this.batch(at, this.run)
  }

  private files(files: NewEvent[]): void {
    db.events.add(files)
    for (const { path, run } of files) this.tell('file', `created ${path}`, run || undefined)
  }

  private changeRun(at: number): void {
    if (this.run === undefined) {
      this.run = db.addRun({ ...blankRun, startedAt: at }).id
      this.tell('run', `started ${this.run}`, this.run)
    } else {
      db.endRun(this.run, { endedAt: at, exitCode: 0 })
      this.tell('run', `ended ${this.run}`, this.run)
      this.run = undefined
    }
  }

  /** A command that makes two files on its way, and one that has not ended yet. */
  private batch(at: number, run: string): void {
    const [first, second] = [++this.count, ++this.count]
    const names = [`f${++this.count}`, `f${++this.count}`]
    db.trace.add(run, {
      executions: [execution(run, first, at, at + 20), execution(run, second, at + 5)],
      ends: [],
      undone: [],
      notes: [],
      unmoved: [],
      files: [fileAt(at + 1, names[0]!, run), fileAt(at + 10, names[1]!, run)],
    })
    this.tell('command', `started ${first}`, run)
    this.tell('file', `created ${names[0]}`, run)
    this.tell('command', `started ${second}`, run)
    this.tell('file', `created ${names[1]}`, run)
    this.tell('command', `ended ${first}`, run)
  }

  private tell(kind: LogEventKind, text: string, run: string | undefined): void {
    this.told.push({ kind, text: `${kind} ${text}`, run })
  }
}

const blankRun = {
  command: ['x'],
  cwd: '/',
  endedAt: undefined,
  exitCode: undefined,
  signal: undefined,
  pid: 1,
  before: undefined,
  after: undefined,
}

const fileAt = (at: number, path: string, run = ''): NewEvent => ({
  run,
  at,
  op: 'create',
  path,
  to: undefined,
  exec: 0,
  pid: 0,
  existed: false,
  directory: false,
  size: 1,
})

const execution = (run: string, id: number, at: number, endedAt?: number): Execution => ({
  run,
  id,
  at,
  pid: id,
  ppid: 1,
  parent: 0,
  depth: 0,
  replaces: undefined,
  program: '/bin/x',
  argv: ['x'],
  truncated: false,
  cwd: '/',
  endedAt,
  exitCode: endedAt === undefined ? undefined : 0,
  signal: undefined,
  note: undefined,
})

function textOf(event: LogEvent): string {
  const what =
    event.kind === 'file'
      ? event.event.path
      : event.kind === 'snapshot'
        ? event.id
        : event.kind === 'operation'
          ? event.operation.id
          : event.kind === 'command'
            ? event.execution.id
            : event.of.id
  return `${event.kind} ${event.action} ${what}`
}

/** All pages, one after the other; `between` is called before each next one. */
function pages(options: EventsOptions, between: () => void = () => {}): string[] {
  const listed: string[] = []
  let cursor: string | undefined
  do {
    const page = events(ctx, { ...options, ...(cursor === undefined ? {} : { cursor }) })
    expect(page.events.length).toBeLessThanOrEqual(options.limit!)
    listed.push(...page.events.map(textOf))
    cursor = page.next
    if (cursor !== undefined) between()
  } while (cursor !== undefined)
  return listed
}

const asked = fc.record({
  kind: fc.subarray<LogEventKind>(['file', 'snapshot', 'operation', 'run', 'command'], { minLength: 1 }),
  limit: fc.integer({ min: 1, max: 7 }),
  reverse: fc.boolean(),
})

describe('the order', () => {
  it('is that in which it was written down: all kinds and pages agree', () => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 25 }),
        fc.array(asked, { minLength: 3, maxLength: 6 }),
        (steps, all) => {
          restart()
          const story = new Story()
          for (const each of steps) story.take(each)
          for (const { kind, limit, reverse } of all) {
            const wanted = story.told.filter(told => kind.includes(told.kind)).map(({ text }) => text)
            expect(pages({ kind, limit, reverse })).toEqual(reverse ? wanted : wanted.toReversed())
          }
          const run = story.told.findLast(each => each.run !== undefined)?.run
          if (run === undefined) return
          const ofRun = story.told.filter(each => each.run === run).map(({ text }) => text)
          expect(pages({ run, kind: ['all'], limit: 3, reverse: true })).toEqual(ofRun)
          expect(pages({ run, kind: ['all'], limit: 4 })).toEqual(ofRun.toReversed())
        },
      ),
      { numRuns: 20 },
    )
  })

  it('pages are whole while events come and old ones go', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 8, maxLength: 20 }), fc.integer({ min: 1, max: 4 }), (steps, limit) => {
        restart()
        const story = new Story()
        for (const each of steps) story.take(each)
        const known = story.told.map(({ text }) => text)
        const gone = new Set<string>()
        let turn = 0
        const listed = pages({ kind: ['all'], limit }, () => {
          story.take(steps[turn % steps.length]!)
          const path = known[turn++]?.match(/^file created (.*)/)?.[1]
          if (path === undefined) return
          db.events.forgetPath(path)
          gone.add(`file created ${path}`)
        })
        expect(listed.filter(text => !gone.has(text))).toEqual(known.filter(text => !gone.has(text)).toReversed())
        expect(new Set(listed).size).toBe(listed.length)
      }),
      { numRuns: 20 },
    )
  })
})

describe('a cursor', () => {
  it('goes on beside an event that is gone', () => {
    db.events.add([fileAt(1, 'a'), fileAt(2, 'b'), fileAt(3, 'c')])
    const { cursor } = events(ctx, { limit: 2 }).events[1]!
    db.events.forgetPath('b')
    expect(pages({ limit: 9 })).toEqual(['file created c', 'file created a'])
    expect(events(ctx, { cursor }).events.map(textOf)).toEqual(['file created a'])
    expect(events(ctx, { cursor, reverse: true }).events.map(textOf)).toEqual(['file created c'])
  })

  it('of another timeline is refused, and so is what is none', () => {
    const wrong = (cursor: string) => expect(() => events(ctx, { cursor }))
    wrong('deadbeef-1-2').toThrow('of another directory')
    wrong('x').toThrow('that is no cursor')
    wrong(`${db.log.id}-1`).toThrow('that is no cursor')
  })
})

describe('since', () => {
  beforeEach(() => {
    const at = (minutes: number) => NOW - minutes * 60_000
    db.events.add([fileAt(at(90), 'old')])
    const { id } = db.addRun({ ...blankRun, startedAt: at(30) })
    db.addSnapshot(makeSnapshot('', { createdAt: at(20), run: id, label: 'mine' }))
    db.events.add([fileAt(at(15), 'late', id)])
    // The clock was set back for a moment.
    db.events.add([fileAt(at(70), 'back')])
    db.events.add([fileAt(at(5), 'new')])
    db.endRun(id, { endedAt: at(4), exitCode: 0 })
  })
  const since = (text: string, reverse = false) =>
    events(ctx, { since: text, reverse }).events.map(event => (event.kind === 'file' ? event.event.path : event.action))

  it.each([
    ['10m', ['ended', 'new']],
    [new Date(NOW - 10 * 60_000).toISOString(), ['ended', 'new']],
    ['mine', ['ended', 'new', 'back', 'late']],
    ['2h', ['ended', 'new', 'back', 'late', 'taken', 'started', 'old']],
  ])('%s', (text, wanted) => {
    expect(since(text)).toEqual(wanted)
    expect(since(text, true)).toEqual(wanted.toReversed())
  })

  it('a run, from its start on', () => {
    const { id } = db.runs()[0]!
    expect(since(id)).toEqual(['ended', 'new', 'back', 'late', 'taken', 'started'])
    expect(since(id, true)).toEqual(['started', 'taken', 'late', 'back', 'new', 'ended'])
  })

  it('what is none of that is refused', () =>
    expect(() => since('yesterday')).toThrow(expect.objectContaining({ code: 'snapshot.unknown' })))
})

it('a kind that there is not is refused with the one that was meant', () => {
  const asks = (kind: string) => expect(() => events(ctx, { kind: [kind as 'file'] }))
  asks('snapshots').toThrow(expect.objectContaining({ code: 'usage', hint: 'Did you mean snapshot?' }))
  asks('xyz').toThrow(expect.objectContaining({ hint: 'There are: file, snapshot, operation, run, command, all' }))
})

it('what is told as it happens are the same objects, from a cursor on, and each once', async () => {
  db.events.add([fileAt(1, 'a'), fileAt(2, 'b')])
  const { cursor } = events(ctx, { limit: 2 }).events[1]!
  const stop = new AbortController()
  const told: LogEvent[] = []
  const isThere = Promise.withResolvers<void>()
  const following = subscribe(
    ctx,
    event => {
      if (event.kind === 'following') {
        expect(event.cursor).toBe(cursor)
        db.addOperation({ ...makeOperation({ kind: 'tag' }) })
        db.events.add(Array.from({ length: 1200 }, (_, i) => fileAt(i, `many${i}`)))
      } else if (event.kind !== 'head') told.push(event)
      if (told.length === 1202) isThere.resolve()
    },
    { signal: stop.signal, cursor },
  )
  await isThere.promise
  stop.abort()
  await following
  expect(told).toEqual(events(ctx, { cursor, reverse: true, limit: 5000 }).events)
})
