/**
 * Walks as deep as directories may be nested. Nothing limits that but the disk, and the stack of calls ends after some
 * thousand levels: so whatever goes down a tree goes through here.
 */

/** Depth first, parents before children. `inside` is asked for what lies in an item after the item was yielded. */
export function* descend<T>(start: Iterable<T>, inside: (item: T) => Iterable<T> | undefined): Generator<T> {
  const open = [start[Symbol.iterator]()]
  for (let level = open.at(-1); level; level = open.at(-1)) {
    const { done, value } = level.next()
    if (done) {
      open.pop()
      continue
    }
    yield value
    const below = inside(value)
    if (below) open.push(below[Symbol.iterator]())
  }
}

/** A function that calls itself, written as a generator: `yield* call(inner(…))` instead of `inner(…)`. */
export type Deep<T> = Generator<Deep<unknown>, T, unknown>

/** The result of a deeper call, from inside a `Deep` function. */
export function* call<T>(inner: Deep<T>): Deep<T> {
  return (yield inner) as T
}

/** Carries out such a function with its callers on the heap. An error ends all of it: callers cannot catch. */
export function runDeep<T>(start: Deep<T>): T {
  const callers: Deep<unknown>[] = []
  let current: Deep<unknown> = start
  let result: unknown
  for (;;) {
    const step = current.next(result)
    if (!step.done) {
      callers.push(current)
      current = step.value
      result = undefined
      continue
    }
    const caller = callers.pop()
    if (!caller) return step.value as T
    current = caller
    result = step.value
  }
}
