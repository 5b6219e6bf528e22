import { describe, expect, it } from 'vitest'
import { redactCommand as redact } from './redact.ts'

/** Of ours and of others: what is found is the same. */
function redactCommand(command: string[], patterns: RegExp[], onLate?: () => void): string[] {
  const shown = redact(command, { quick: [], other: patterns }, onLate)
  const isWatched = onLate !== undefined
  if (!isWatched) expect(redact(command, { quick: patterns, other: [] })).toEqual(shown)
  if (!isWatched) expect(redact(command, { quick: patterns.slice(1), other: patterns.slice(0, 1) })).toEqual(shown)
  return shown
}

const patterns = [/(?<=--password )\S+/g, /(?<=token=)\w+/g, /\w+(?=@host)/g]

describe('redactCommand', () => {
  it('hides a secret that is a word of its own, a part of a word, and one in the middle', () => {
    expect(redactCommand(['login', '--password', 'hunter2', 'user'], patterns)).toEqual([
      'login',
      '--password',
      '‹redacted›',
      'user',
    ])
    expect(redactCommand(['curl', 'x?token=abc&y=1'], patterns)).toEqual(['curl', 'x?token=‹redacted›&y=1'])
    expect(redactCommand(['ssh', 'me@host:1'], patterns)).toEqual(['ssh', '‹redacted›@host:1'])
  })

  it('joins overlapping matches and leaves the rest as it is', () => {
    expect(redactCommand(['token=abc@host', 'plain'], [...patterns, /abc@h/g])).toEqual([
      'token=‹redacted›ost',
      'plain',
    ])
    expect(redactCommand(['a', 'b c', ''], patterns)).toEqual(['a', 'b c', ''])
  })

  it('cuts off what is too long to be searched, in the middle of a word, too', () => {
    const [program, long, behind] = redactCommand(['x', 'y'.repeat(70_000), '--password s'], patterns)
    expect([program, behind]).toEqual(['x', '…'])
    expect(long).toMatch(/^y{7000,8000}…$/)
    expect(redactCommand([`${' '.repeat(70_000)}token=abc`], patterns).join()).not.toContain('abc')
  })

  it('hides all arguments when a pattern takes too long, instead of making the command wait', () => {
    let late = 0
    const endless = redactCommand(['tool', `${'a'.repeat(5000)}!`, 'b'], [/(a+)+$/g], () => late++)
    expect([endless, late]).toEqual([['tool', '‹redacted›', '‹redacted›'], 1])
    redactCommand(['tool', 'a'], [/(a+)+$/g], () => late++)
    expect(late).toBe(1)
  })

  it('shows nothing of a secret at the cut that only what follows gives away', () => {
    const [word] = redactCommand([`${' '.repeat(7 * 1024 - 3)}secret@host`], patterns)
    expect(word!.trim()).toBe('‹redacted›…')
  })
})
