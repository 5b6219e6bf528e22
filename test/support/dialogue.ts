/** What a user says to the built program in a small directory, and what it must answer. */
import { expect } from 'vitest'
import { savepoint, savepointJson, steady } from './built-cli.ts'
import { Workspace } from './workspace.ts'

/** Two files, one of them in a directory. */
export function smallWorkspace(): Workspace {
  const space = new Workspace()
  space.write('a.txt', 'one\n')
  space.write('src/b.txt', 'b\n')
  return space
}

/** `current`: the workspace of the running test. */
export function dialogue(current: () => Workspace) {
  return {
    /** Runs, expects the exit code and silence on stderr, and answers stdout without what differs each time. */
    say(args: string[], status = 0): string {
      const result = savepoint(current(), args)
      expect({ args, status: result.status, stderr: result.stderr }).toEqual({ args, status, stderr: '' })
      return steady(result.stdout, current())
    },

    json: (...args: string[]) => savepointJson(current(), args),

    idOf: (...args: string[]): string => savepoint(current(), [...args, '-q']).stdout.trim(),

    take: (...args: string[]): string => savepoint(current(), ['snapshot', '-q', ...args]).stdout.trim(),

    refused(args: string[], status: number, message: RegExp): void {
      const result = savepoint(current(), args)
      expect({ args, status: result.status, stdout: result.stdout }).toEqual({ args, status, stdout: '' })
      expect(result.stderr).toMatch(message)
    },

    /** The error as text and as JSON: the same code, message and hint, and stdout stays empty. */
    refusedAs(args: string[], status: number, code: string, text: string | RegExp) {
      const plain = savepoint(current(), args)
      expect({ args, status: plain.status, stdout: plain.stdout }).toEqual({ args, status, stdout: '' })
      if (typeof text === 'string') expect(steady(plain.stderr, current())).toBe(text)
      else expect(plain.stderr).toMatch(text)
      const asJson = savepoint(current(), ['--json', ...args])
      expect({ args, status: asJson.status, stdout: asJson.stdout }).toEqual({ args, status, stdout: '' })
      const { error } = JSON.parse(asJson.stderr.trim().split('\n').at(-1)!)
      expect(Object.keys(error)).toEqual(['code', 'message', 'hint', 'data'])
      expect(error.code).toBe(code)
      return error
    },
  }
}
