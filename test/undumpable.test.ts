/** Processes that an ordinary user's tracer may not look at: undumpable ones, as agents that hold keys are, and unreadable programs. */
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { probeTracers } from '../src/tracers/select.ts'
import { compileC } from './support/c-program.ts'
import { line, useTracedRuns } from './support/traced-runs.ts'
import { canDropPrivilege, runAsUser } from './support/without-privilege.ts'
import type { Workspace } from './support/workspace.ts'

const drivers: [string, NodeJS.ProcessEnv][] = [
  ['seccomp', { SAVEPOINT_TRACER: 'seccomp', SAVEPOINT_EXITS: 'pidfd' }],
  ['seccomp on an older kernel', { SAVEPOINT_TRACER: 'seccomp', SAVEPOINT_EXITS: 'ptrace' }],
  ['ptrace', { SAVEPOINT_TRACER: 'ptrace' }],
]
const works = new Map(probeTracers().map(probe => [probe.name as string, probe.works]))

/** Executes its arguments, searched along PATH: in a fork whose end is its own, or with `-` itself. */
const SHUT = `
  #include <string.h>
  #include <sys/prctl.h>
  #include <sys/wait.h>
  #include <unistd.h>
  int main(int count, char **words) {
    int status = 0, by_itself = strcmp(words[1], "-") == 0;
    prctl(PR_SET_DUMPABLE, 0);
    if (by_itself || fork() == 0) { execvp(words[1 + by_itself], words + 1 + by_itself); _exit(99); }
    wait(&status);
    return WEXITSTATUS(status);
  }`

for (const [title, settings] of drivers) {
  describe.skipIf(!canDropPrivilege || !works.get(settings.SAVEPOINT_TRACER!))(title, () => {
    let space: Workspace
    const { traced, find } = useTracedRuns(made => {
      space = made
    }, settings)
    const run = async (script: string) => {
      const { error, results } = await runAsUser(space, [['run', { command: ['sh', '-c', script] }]])
      expect(error).toBeUndefined()
      return results.at(-1)
    }

    beforeEach(() => compileC(space.at('shut'), SHUT))

    it('what an undumpable process executes is told, with its children, its end, and what it replaces', async () => {
      const result = await run(
        'PATH=/nowhere:/none:$PATH; ./shut sh -c "sleep 0.1; ls /nothing; exit 5" 2>/dev/null; ./shut - sh -c "sleep 0.1; exit 6"',
      )
      expect(result).toMatchObject({ exitCode: 6, trace: { lost: 0 } })
      const [own, first, shell, , , second, replacing] = traced()
      expect(traced().map(line)).toEqual([
        expect.stringMatching(/^sh -c PATH/),
        './shut sh -c sleep 0.1; ls /nothing; exit 5',
        'sh -c sleep 0.1; ls /nothing; exit 5',
        'sleep 0.1',
        'ls /nothing',
        './shut - sh -c sleep 0.1; exit 6',
        'sh -c sleep 0.1; exit 6',
        'sleep 0.1',
      ])
      expect(first).toMatchObject({ parent: own!.id, exitCode: 5 })
      expect(shell).toMatchObject({ parent: first!.id, depth: 2, exitCode: 5, cwd: space.dir, truncated: false })
      expect(find('ls')).toMatchObject({ parent: shell!.id, exitCode: 2 })
      expect(replacing).toMatchObject({ replaces: second!.id, pid: second!.pid, exitCode: 6 })
    })

    it('what it destroys is guarded before the first change', async () => {
      space.write('d/old', 'old')
      // The first one to go is kept by itself.
      const { trace } = await run('echo new > d/new; echo newer > d/newer; ./shut rm -r d')
      const removal = traced().find(execution => line(execution) === 'rm -r d')
      // What is over before it was seen is counted.
      if (removal) expect(removal.note).toMatch(/^guarded by snap_/)
      else expect(trace.lost).toBeGreaterThan(0)
    })

    it('a program that may not be read: what it executes, and how both end', async () => {
      space.sh('cp "$(command -v dash || command -v sh)" secret; chmod 111 secret')
      const result = await run('./shut ./secret -c "sleep 0.1; ./secret -c \\"sleep 0.1; exit 4\\"; exit 7"')
      expect(result).toMatchObject({ exitCode: 7, trace: { lost: 0 } })
      expect(find('./secret -c sleep 0.1; ./secret')).toMatchObject({ exitCode: 7 })
      const outer = find('./secret -c sleep 0.1; ./secret')
      expect(find('./secret -c sleep 0.1; exit')).toMatchObject({ parent: outer.id, exitCode: 4 })
    })

    it('what could not be executed is not told', async () => {
      const { exitCode } = await run('./shut nothing-of-this-name')
      expect(exitCode).toBe(99)
      expect(traced().length).toBe(2)
    })
  })
}

/** Changes files by itself, undumpable, waits for a line, and changes one more. */
const QUIET = `
  #include <stdio.h>
  #include <sys/prctl.h>
  #include <sys/stat.h>
  #include <unistd.h>
  static void append(const char *name) { FILE *file = fopen(name, "a"); fputs("agent\\n", file); fclose(file); }
  int main(void) {
    char word[8];
    prctl(PR_SET_DUMPABLE, 0);
    append("own"); mkdir("made", 0777); append("made/x"); unlink("gone"); rename("b", "c"); rename("src", "lib");
    fclose(fopen("../ready", "w"));
    fgets(word, sizeof word, fopen("../go", "r"));
    append("own");
    return 0;
  }`
/** What changed so long after a call that could not be read is none of its work (src/engine/vague-calls.ts). */
const EFFECT_MS = 3000

describe.skipIf(!canDropPrivilege || !works.get('seccomp'))('what an undumpable process changes by itself', () => {
  let space: Workspace
  useTracedRuns(
    made => {
      space = made
    },
    { SAVEPOINT_TRACER: 'seccomp' },
  )

  it('goes back with the run, and what others changed meanwhile stays', async () => {
    for (const name of ['own', 'gone', 'b', 'theirs', 'src/x']) space.write(name, `${name}\n`)
    space.sh('git init -q; git add .; git commit -qm first')
    compileC(space.at('../quiet'), QUIET)
    for (const name of ['ready', 'go']) space.sh(`mkfifo ../${name}`)
    const running = runAsUser(space, [['run', { command: ['../quiet'] }]])
    await readFile(space.at('../ready'))
    space.sh('mkdir near')
    await pause(EFFECT_MS + 200)
    space.sh('echo hand >> theirs; echo hand > new; git commit -qm hand theirs')
    await pause(EFFECT_MS + 200)
    await writeFile(space.at('../go'), 'end\n')
    const [result] = (await running).results
    const changed = result.changes.map(({ path }: { path: string }) => path)
    const files = ['b', 'c', 'gone', 'lib/x', 'made/x', 'near', 'own', 'src/x']
    expect(changed.filter((path: string) => files.includes(path)).sort()).toEqual(files)
    expect(changed).not.toContain('theirs')

    const { results } = await runAsUser(space, [['undo', {}]])
    const left = results[0].restore.leftAlone.map(({ path }: { path: string }) => path)
    expect(left.sort()).toEqual(['.git', 'new', 'theirs'])
    // It is likely, and no more.
    expect(results[0].restore.mixed).toEqual(files)
    const there = space.sh(
      'for each in $(find . -type f -not -path "*/.git/*" | sort); do echo "$each: $(cat $each)"; done',
    )
    const before = './a: a1\n./b: b\n./gone: gone\n./new: hand\n./own: own\n./src/x: src/x\n'
    expect(there).toBe(`${before}./theirs: theirs\nhand\n`)
    expect(space.sh('git log --format=%s')).toBe('hand\nfirst\n')
  })
})
