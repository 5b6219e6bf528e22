/** Milliseconds of a clock that nobody sets. Not `performance.now()`: to load what that is part of takes 2 ms at each start. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
