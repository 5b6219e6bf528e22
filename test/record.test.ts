/** `record`: what a command looked at and changed is in the bundle, before and after, and nothing is noticed by the command. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Bundle, isChanged } from '../src/record/index.ts'
import { timeText } from '../src/record/time-text.ts'
import { builtCommand } from './support/built-cli.ts'
import { compileC } from './support/c-program.ts'
import { hasXattrs } from './support/machine.ts'
import { record, recordScript } from './support/recorded.ts'
import { Workspace } from './support/workspace.ts'

let space: Workspace
beforeEach(() => {
  space = new Workspace()
})
afterEach(() => space.remove())

describe('states', () => {
  it('of what is read, written, made and deleted, each with its contents', () => {
    space.write('read', 'read\n')
    space.write('append', 'one\n')
    space.write('gone', 'gone\n')
    space.write('over', 'old\n')
    const { result, manifest, file, text } = bound(
      recordScript(
        space,
        'cat read; echo two >> append; rm gone; echo new > over; echo made > made; mkdir dir; ln -s dir link; chmod 600 read; test ! -e nothing',
      ),
    )
    expect(result.stdout).toBe('read\n')
    expect(manifest).toMatchObject({
      exit_status: 0,
      signal: null,
      start_cwd: space.dir,
      complete: true,
      lost_events: 0,
    })
    expect(file('read')).toMatchObject({
      operations: ['read', 'write', 'existence'],
      before: { mode: 0o644 },
      after: { mode: 0o600 },
    })
    expect([text('read', 'before'), text('read', 'after')]).toEqual(['read\n', 'read\n'])
    expect([text('append', 'before'), text('append', 'after')]).toEqual(['one\n', 'one\ntwo\n'])
    expect(file('gone')).toMatchObject({ before: { exists: true, size: 5 }, after: { exists: false, tombstone: true } })
    expect(file('gone').operations).toContain('delete')
    expect(text('gone', 'before')).toBe('gone\n')
    expect([text('over', 'before'), text('over', 'after')]).toEqual(['old\n', 'new\n'])
    expect(file('made')).toMatchObject({
      operations: ['write'],
      before: { exists: false },
      after: { type: 'file', size: 5 },
    })
    expect(file('made').after.blob).toBe(`after:${space.at('made')}`)
    expect(file('over').before.blob).toBe(`before:${space.at('over')}`)
    expect(file('dir').after).toMatchObject({ type: 'directory' })
    expect(file('link').after).toMatchObject({ type: 'symlink', target: 'dir' })
    expect(file('nothing')).toMatchObject({
      operations: ['existence'],
      before: { exists: false },
      after: { exists: false },
    })
  })

  it('of a directory whose entries came or went', () => {
    space.write('in/a', 'a')
    const before = statSync(space.at('in'), { bigint: true }).mtimeNs
    const { file } = bound(recordScript(space, 'ls in; rm in/a'))
    const after = statSync(space.at('in'), { bigint: true }).mtimeNs
    expect(['before', 'after'].map(side => file('in')[side as 'before' | 'after'].mtime)).toEqual(
      [before, after].map(timeText),
    )
    expect(before).not.toBe(after)
  })

  it('of both sides of a rename, also of a whole directory and of what is changed afterwards', () => {
    space.write('a', 'content of a\n')
    space.write('b', 'content of b\n')
    space.write('dir/sub/f', 'f\n')
    space.write('dir/g', 'g\n')
    space.write('dir/h', 'h\n')
    const { file, text } = bound(
      recordScript(space, 'mv a b; mv dir moved; echo more >> moved/g; rm moved/h; mkdir dir; echo new > dir/g'),
    )
    expect(file('a')).toMatchObject({ before: { exists: true }, after: { tombstone: true } })
    expect([text('a', 'before'), text('b', 'before'), text('b', 'after')]).toEqual([
      'content of a\n',
      'content of b\n',
      'content of a\n',
    ])
    // Stored once.
    expect(file('b').after.blob).toBe(file('a').before.blob)
    expect(text('dir/sub/f', 'before')).toBe('f\n')
    expect(file('dir/sub/f').after).toEqual({ exists: false, tombstone: true })
    expect(file('moved/sub/f')).toMatchObject({ before: { exists: false }, after: { exists: true } })
    expect(text('moved/sub/f', 'after')).toBe('f\n')
    expect([text('dir/g', 'before'), text('dir/g', 'after'), text('moved/g', 'after')]).toEqual([
      'g\n',
      'new\n',
      'g\nmore\n',
    ])
    expect(file('moved/g').before).toEqual({ exists: false })
    expect([text('dir/h', 'before'), file('moved/h').after]).toEqual(['h\n', { exists: false }])
  })

  it('of names that are not text, exactly', () => {
    const { bundle } = bound(
      record(space, [
        'python3',
        '-c',
        String.raw`open(b"not\xffutf8", "w").write("x"); open("new\nline \\ ä", "w").write("y")`,
      ]),
    )
    const odd = bundle.files.find(({ raw }) => raw.endsWith('/not\xffutf8'))!
    expect(odd.path).toBe(`${space.dir}/not\\xffutf8`)
    expect(Buffer.from(odd.path_bytes!, 'base64').toString('latin1')).toBe(`${space.dir}/not\xffutf8`)
    const line = bundle.files.find(({ path }) => path === `${space.dir}/new\nline \\ ä`)!
    expect(line.path_bytes).toBeUndefined()
    expect(bundle.content(line.after, 100)!.toString()).toBe('y')
    expect(bundle.content(odd.after, 100)!.toString()).toBe('x')
  })

  it('of names of all kinds, and of paths that are longer than the system takes', () => {
    const names = ['-rf', 'a..b', ' trailing ', 'emoji 😀', 'n'.repeat(255), '*', "'quoted'"]
    const script = `import os,sys
for name in sys.argv[1:]: open(name, 'w').write(name)
part = 'd' * 250
for i in range(20):
  os.mkdir(part); os.chdir(part)
open('deep', 'w').write('deep')`
    const { bundle, file, manifest } = bound(record(space, ['python3', '-c', script, ...names]))
    for (const name of names) expect([name, bundle.content(file(name).after, 1000)!.toString()]).toEqual([name, name])
    // Nobody can name them, so they may be missing, but not unnoticed.
    const deep = bundle.files.find(({ path }) => path.endsWith('/deep'))
    expect(deep !== undefined || !manifest.complete || manifest.skipped_count > 0).toBe(true)
  })

  it('of pipes and of files that change while all is over do not hang', () => {
    space.sh('mkfifo fifo')
    const { file } = bound(recordScript(space, 'ls -l fifo >/dev/null; (echo x > fifo) & cat fifo; wait'))
    expect(file('fifo')).toMatchObject({ before: { type: 'fifo' }, after: { type: 'fifo' } })
    expect(file('fifo').before.blob).toBeUndefined()
  })

  it('of a file that another name of it changes', () => {
    space.write('one', 'first\n')
    space.sh('ln one two')
    const { text } = bound(recordScript(space, 'cat two; echo second >> one; cat two'))
    expect([text('two', 'before'), text('one', 'before')]).toEqual(['first\n', 'first\n'])
    expect([text('one', 'after')]).toEqual(['first\nsecond\n'])
  })

  it('of what nobody changed are told once: one content for both', () => {
    space.write('same', 'the same\n')
    space.write('copy', 'the same\n')
    const { file, bundle } = bound(recordScript(space, 'cat same copy >/dev/null'))
    expect(file('same').after.blob).toBe(file('same').before.blob)
    expect(file('copy').before.blob).toBe(file('same').before.blob)
    expect(bundle.files.filter(isChanged).filter(({ path }) => path.startsWith(space.dir))).toEqual([])
  })

  it('with --record=changes only of what is changed', () => {
    space.write('read')
    space.write('written', 'old')
    const { manifest, find, text } = bound(
      recordScript(space, 'cat read; test -e nothing || echo new > written', { args: ['--record=changes'] }),
    )
    expect(manifest.recorded).toBe('changes')
    expect([find('read'), find('nothing')]).toEqual([undefined, undefined])
    expect([text('written', 'before'), text('written', 'after')]).toEqual(['old', 'new\n'])
  })
})

describe('calls', () => {
  it('of every kind that changes files are seen before they do', () => {
    compileC(space.at('program'), changingProgram)
    for (const name of ['truncated', 'exchanged', 'mapped', 'by-openat2', 'copied-over', 'stamped', 'xattr', 'linked'])
      space.write(name, `old content of ${name}\n`)
    space.write('exchanged-with', 'other\n')
    const { result, file, text, find } = bound(record(space, ['./program', ...(hasXattrs ? ['xattrs'] : [])]))
    expect(result.stderr).toContain('io_uring: Function not implemented')
    expect(result.status).toBe(0)
    for (const name of ['truncated', 'exchanged', 'mapped', 'by-openat2', 'copied-over']) {
      expect([name, text(name, 'before')]).toEqual([name, `old content of ${name}\n`])
      expect([name, text(name, 'after')]).not.toEqual([name, `old content of ${name}\n`])
    }
    expect(text('exchanged-with', 'after')).toBe('old content of exchanged\n')
    expect(text('mapped', 'after')).toBe('NEW content of mapped\n')
    expect(file('fifo').after.type).toBe('fifo')
    expect(file('socket').after.type).toBe('socket')
    expect(file('stamped').after.mtime).toBe('1970-01-01T00:00:01.000000002Z')
    expect(text('stamped', 'before')).toBe('old content of stamped\n')
    expect(file('new-link').after).toMatchObject({ type: 'file' })
    expect(text('from-tmpfile', 'after')).toBe('nameless\n')
    expect(file('xattr').operations.includes('write')).toBe(hasXattrs)
    expect(find('looked-at-by-statx')).toMatchObject({ operations: ['existence'] })
    expect(file('read-by-thread-after-chdir/there').operations).toContain('existence')
    expect(file('read-by-thread-after-chdir/again/there').operations).toContain('existence')
    expect(file('again').operations).toContain('existence')
  })

  it('of processes that leave everything behind are seen to their end, also after the command', () => {
    const { manifest, text } = bound(
      recordScript(
        space,
        "setsid sh -c '(sleep 0.3; echo late > late) & ' >/dev/null 2>&1 </dev/null; echo early > early",
      ),
    )
    expect([text('early', 'after'), text('late', 'after')]).toEqual(['early\n', 'late\n'])
    expect(manifest.complete).toBe(true)
  })

  it('of what is written through a descriptor that was open before count', () => {
    const fd = openSync(space.at('log'), 'a')
    const { text, file } = bound(recordScript(space, 'echo to the log', { stdio: ['ignore', fd, 'pipe'] }))
    closeSync(fd)
    expect(file('log').before).toMatchObject({ exists: true, size: 0 })
    expect(text('log', 'after')).toBe('to the log\n')
  })
})

describe('the command', () => {
  it('has its own exit code, signal, input and output', () => {
    expect(recordScript(space, 'exit 7').result.status).toBe(7)
    const killed = recordScript(space, 'kill -9 $$')
    expect([killed.result.status, killed.manifest.signal, killed.manifest.exit_status]).toEqual([137, 'SIGKILL', null])
    const dead = recordScript(space, 'kill -TERM $$')
    expect([dead.result.signal, dead.manifest.signal]).toEqual(['SIGTERM', 'SIGTERM'])
    const copied = record(space, ['cat'], { input: 'typed', stdio: ['pipe', 'pipe', 'pipe'] })
    expect(copied.result.stdout).toBe('typed')
    expect(copied.result.stderr).toContain('recorded')
  })

  it('dies of Ctrl-C as without us, and the bundle is written', async () => {
    const [program, ...args] = builtCommand
    const script =
      'trap "echo told > told; trap - INT; kill -INT $$" INT; : > ready; while [ -e ready ]; do sleep 0.05; done'
    const child = spawn(program!, [...args, 'record', '-o', join(space.base, 'bundle'), '--', 'sh', '-c', script], {
      cwd: space.dir,
      env: space.env,
      stdio: 'ignore',
      detached: true,
    })
    const ended = once(child, 'exit')
    const watcher = watch(space.dir)
    while (!existsSync(space.at('ready'))) await once(watcher, 'change')
    watcher.close()
    process.kill(-child.pid!, 'SIGINT')
    expect(await ended).toEqual([null, 'SIGINT'])
    const bundle = new Bundle(join(space.base, 'bundle'))
    expect(bundle.manifest).toMatchObject({ signal: 'SIGINT', complete: true })
    expect(bundle.files.find(({ path }) => path === space.at('told'))!.after.exists).toBe(true)
  })

  it('finds nothing of ours in its directory, and leaves nothing in our home', () => {
    const { result } = recordScript(space, 'ls -A; ls -A ..', { name: 'bundle' })
    expect(result.stdout.split('\n').filter(Boolean).sort()).toEqual(['store home', 'user', 'work'])
    expect(readdirSync(join(space.home, 'recordings'))).toEqual([])
    expect(existsSync(join(space.base, 'bundle', 'manifest.json'))).toBe(true)
    expect(readdirSync(space.base).filter(name => name.startsWith('.'))).toEqual([])
  })
})

describe('git', () => {
  it('in every shape: no commit, a worktree, a submodule of its own, and none at all', () => {
    space.git('init', '-q')
    space.write('staged', 'staged\n')
    space.git('add', '-A')
    const early = bound(recordScript(space, 'cat staged >/dev/null'))
    expect(early.file('staged').git).toMatchObject({ head: null, tracked: true, dirty: true })
    expect(early.text('staged', 'before')).toBe('staged\n')
    space.git('commit', '-qm', '1')
    space.git('worktree', 'add', '-q', '../tree')
    space.git('pack-refs', '--all')
    const head = space.git('rev-parse', 'HEAD').trim()
    const tree = record(space, ['cat', join(space.base, 'tree', 'staged')])
    expect(tree.file(join(space.base, 'tree', 'staged')).git).toMatchObject({
      root: join(space.base, 'tree'),
      head,
      dirty: false,
    })
    const without = bound(recordScript(space, 'cat staged >/dev/null', { env: { ...space.env, PATH: withoutGit() } }))
    expect(without.file('staged').git).toMatchObject({ in_repo: true, tracked: false })
    expect(without.text('staged', 'before')).toBe('staged\n')
  })

  /** The few programs that are needed, and no git. */
  function withoutGit(): string {
    const bin = join(space.base, 'bin')
    space.sh(`mkdir -p '${bin}'; for name in sh cat; do ln -sf "$(command -v $name)" '${bin}'; done`)
    return bin
  }

  it('stands for clean files that are only read; all others have their contents', () => {
    space.git('init', '-q')
    space.write('.gitignore', 'ignored\n')
    for (const name of ['clean', 'dirty', 'written', 'ends-clean', 'looked-at']) space.write(name)
    space.git('add', '-A')
    space.git('commit', '-qm', 'all')
    space.write('dirty', 'changed\n')
    space.write('ignored', 'secret\n')
    space.write('untracked', 'untracked\n')
    const head = space.git('rev-parse', 'HEAD').trim()
    const { manifest, file, find, text } = bound(
      recordScript(
        space,
        'cat clean dirty ignored untracked > /dev/null; echo x > written; cp ends-clean saved; echo y > ends-clean; cat saved > ends-clean; rm saved; git log >/dev/null; test -e looked-at',
      ),
    )
    const repo = { in_repo: true, root: space.dir, head }
    expect(manifest.git_repositories).toContainEqual({ root: space.dir, head, head_before: head })
    expect(file('clean').git).toMatchObject({
      ...repo,
      relative_path: 'clean',
      tracked: true,
      dirty: false,
      ignored: false,
    })
    expect(file('clean').git).toHaveProperty('oid', space.git('rev-parse', 'HEAD:clean').trim())
    expect([file('clean').before.blob, file('clean').after.blob]).toEqual([undefined, undefined])
    expect(file('dirty').git).toMatchObject({ tracked: true, dirty: true })
    expect(text('dirty', 'before')).toBe('changed\n')
    expect(file('ignored').git).toMatchObject({ tracked: false, ignored: true })
    expect(text('ignored', 'before')).toBe('secret\n')
    expect(file('untracked').git).toMatchObject({ tracked: false, dirty: false, ignored: false })
    expect(text('untracked', 'before')).toBe('untracked\n')
    expect(file('written').git).toMatchObject({ tracked: true, dirty: true })
    expect([text('written', 'before'), text('written', 'after')]).toEqual(['written\n', 'x\n'])
    expect(file('ends-clean').git).toMatchObject({ dirty: false })
    expect(text('ends-clean', 'after')).toBe('ends-clean\n')
    expect(file('looked-at').git).toMatchObject({ tracked: true, dirty: false })
    expect(find('.git/HEAD')).toBeUndefined()
    expect(find('.git')).toBeUndefined()
  })
})

/** With paths relative to the workspace, for a test that has its own names. */
function bound(recorded: ReturnType<typeof record>) {
  expect([recorded.result.status, recorded.result.stderr]).toEqual([0, expect.any(String)])
  return {
    result: recorded.result,
    manifest: recorded.manifest,
    bundle: recorded.bundle,
    find: (path: string) => recorded.find(space.at(path)),
    file: (path: string) => recorded.file(space.at(path)),
    text: (path: string, side: 'before' | 'after') => recorded.text(space.at(path), side),
  }
}

const changingProgram = String.raw`
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
static void *look(void *unused) { struct stat s; stat("there", &s); return unused; }
int main(int count, char **words) {
  (void)words;
  if (truncate("truncated", 3)) return 1;
  if (syscall(SYS_renameat2, AT_FDCWD, "exchanged", AT_FDCWD, "exchanged-with", 2)) return 2;
  int fd = open("mapped", O_RDWR);
  char *memory = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  memcpy(memory, "NEW", 3);
  struct open_how how = {.flags = O_WRONLY | O_TRUNC};
  fd = syscall(SYS_openat2, AT_FDCWD, "by-openat2", &how, sizeof how);
  if (write(fd, "new\n", 4) != 4) return 3;
  close(fd);
  int from = open("mapped", O_RDONLY), to = open("copied-over", O_WRONLY | O_TRUNC);
  if (copy_file_range(from, NULL, to, NULL, 10, 0) != 10) return 4;
  if (mkfifo("fifo", 0600)) return 5;
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
  if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address)) return 6;
  struct timespec times[2] = {{1, 2}, {1, 2}};
  if (utimensat(AT_FDCWD, "stamped", times, 0)) return 7;
  if (link("linked", "new-link")) return 8;
  fd = open(".", O_TMPFILE | O_WRONLY, 0600);
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (write(fd, "nameless\n", 9) != 9 || linkat(AT_FDCWD, name, AT_FDCWD, "from-tmpfile", AT_SYMLINK_FOLLOW)) return 9;
  if (count > 1 && setxattr("xattr", "user.x", "y", 1, 0)) return 10;
  struct statx found;
  if (statx(AT_FDCWD, "looked-at-by-statx", 0, STATX_BASIC_STATS, &found) == 0) return 11;
  if (syscall(425, 4, memory) >= 0 || errno != ENOSYS) return 12;
  perror("io_uring");
  if (mkdir("read-by-thread-after-chdir", 0700) || chdir("read-by-thread-after-chdir")) return 13;
  pthread_t thread;
  pthread_create(&thread, NULL, look, NULL);
  pthread_join(thread, NULL);
  if (mkdir("again", 0700) || chdir("again")) return 14;
  struct stat there;
  stat("there", &there);
  if (chdir("../..")) return 15;
  stat("again", &there);
  return 0;
}
`
