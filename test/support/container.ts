/**
 * A real container, by podman with its default profile: the system's own programs, and a workspace at its own path. Made in
 * mounts of its own, so that nothing of it is left on the machine.
 */
import { spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readlinkSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { builtCommand } from './built-cli.ts'
import { isRoot } from './machine.ts'

const checkout = realpathSync(fileURLToPath(new URL('../..', import.meta.url)))

/** podman wants one hierarchy of control groups, which not every machine has mounted, and leaves files in /run and /dev/shm. */
const apart = `umount -R /sys/fs/cgroup 2>/dev/null || true; mount -t cgroup2 none /sys/fs/cgroup; mount -t tmpfs none /run; mount -t tmpfs none /dev/shm; exec "$@"`

/** Puts a command where containers can be made. */
export const besideContainers = (command: string[]): string[] => ['unshare', '-m', 'sh', '-ec', apart, 'sh', ...command]

/**
 * The command line of podman that runs `command` in a container with the directory `base` in it, which is also where its root
 * is made. `options` are podman's.
 */
export function containerCommand(base: string, command: string[], options: string[] = []): string[] {
  const root = join(base, 'root')
  const shared = new Set(['/usr', checkout, dirname(realpathSync(builtCommand[0]!))])
  for (const name of ['proc', 'sys', 'dev', 'tmp', 'run', 'etc', 'usr'])
    mkdirSync(join(root, name), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    const found = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (!found) continue
    if (!found.isSymbolicLink()) shared.add(`/${name}`)
    else if (!lstatSync(join(root, name), { throwIfNoEntry: false }))
      symlinkSync(readlinkSync(`/${name}`), join(root, name))
  }
  const own = join(base, 'podman')
  return [
    ...['podman', '--root', join(own, 'storage'), '--runroot', join(own, 'run'), '--tmpdir', join(own, 'tmp')],
    ...['--storage-driver', 'vfs', '--cgroup-manager', 'cgroupfs', '--events-backend', 'none'],
    // Raising limits takes a right that the machine itself may not have.
    ...['run', '--rm', '--cgroups=disabled', '--network=none', '--ulimit=nofile=1024:1024', '--ulimit=nproc=1024:1024'],
    ...[...shared].flatMap(path => ['-v', `${path}:${path}:ro`]),
    ...['-v', `${base}:${base}`],
    ...options,
    ...['--rootfs', root, ...command],
  ]
}

/** undefined: it can be had; otherwise what is missing. */
export const missingForContainers: string | undefined = probe()

function probe(): string | undefined {
  if (!isRoot) return 'root'
  if (spawnSync('podman', ['--version']).status !== 0) return 'podman'
  const base = mkdtempSync(join(tmpdir(), 'savepoint-probe-'))
  try {
    const [program, ...args] = besideContainers(containerCommand(base, ['true']))
    const { status, stderr } = spawnSync(program!, args, { encoding: 'utf8', timeout: 60_000 })
    return status === 0
      ? undefined
      : `a kernel on which podman can start a container: ${stderr.trim().split('\n').at(-1)}`
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
}
