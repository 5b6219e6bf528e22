/** What is mounted inside of a directory: a snapshot of its filesystem shows what lies under that instead. And what at it. */
import { closeSync, constants, openSync, readFileSync, readlinkSync } from 'node:fs'
import { isWithin, type Raw, rawFromBytes, rawToBytes } from '../model/raw-path.ts'
import { addon } from '../native/addon.ts'

/** Relative to the directory. Empty where the system does not tell. */
export const mountsBelow = (directory: Buffer): Raw[] => namesBelow(directory, mounts())

/** Those that the kernel answers for by itself: to ask about another one may take for ever. */
export const answeringMountsBelow = (directory: Buffer): Raw[] =>
  namesBelow(
    directory,
    mounts().filter(({ type }) => ANSWERING.has(type)),
  )

const ANSWERING = new Set(['tmpfs', 'ramfs', 'ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'f2fs', 'zfs'])

function namesBelow(directory: Buffer, mounts: readonly Mount[]): Raw[] {
  const path = rawFromBytes(directory)
  const prefix = path === '/' ? path : `${path}/`
  return mounts.filter(({ point }) => point.startsWith(prefix)).map(({ point }) => point.slice(prefix.length))
}

/**
 * A device, a dataset…, and in brackets what of it, where that is a part; '' where nothing is mounted, undefined where the
 * system does not tell. Asked of the directory itself: of several mounts with this path, only one is not hidden.
 */
export function mountedAt(directory: Buffer): Raw | undefined {
  const id = mountIdOf(directory)
  const shown = id === undefined ? undefined : mounts().find(mount => mount.id === id)
  if (!shown) return undefined
  if (shown.point !== rawFromBytes(directory)) return ''
  return shown.root === '/' ? shown.source : `${shown.source}[${shown.root}]`
}

/** How what it lies on is mounted, apart from whether it can be written to: what a user may do can depend on it. */
export function mountOptionsOf(directory: Buffer): Raw {
  const id = mountIdOf(directory)
  const options = mounts().find(mount => mount.id === id)?.options ?? ''
  return options
    .split(',')
    .filter(option => option !== 'rw' && option !== 'ro')
    .join(',')
}

/** The device of its filesystem, `major:minor`: with btrfs another one than stat tells. undefined where the system does not tell. */
export const deviceOfMount = (id: bigint): string | undefined => mounts().find(mount => mount.id === String(id))?.device

export interface Shown {
  place: Raw
  /** What of the directory is shown there: '' for all of it. */
  below: Raw
}

/** All paths that lead to the directory, or to a part of it: by itself, and through other mounts of its filesystem. */
export function shownAt(directory: Buffer): Shown[] {
  const path = rawFromBytes(directory)
  const all = mounts()
  const id = mountIdOf(directory)
  const own = all.find(mount => mount.id === id)
  if (!own || !isWithin(path, own.point)) return [{ place: path, below: '' }]
  const inside = joined(own.root, below(path, own.point))
  const others = all.flatMap(({ id, device, root, point }) => {
    if (id === own.id || device !== own.device) return []
    if (isWithin(inside, root)) return [{ place: joined(point, below(inside, root)), below: '' }]
    return isWithin(root, inside) ? [{ place: point, below: below(root, inside) }] : []
  })
  return [{ place: path, below: '' }, ...others]
}

/** The part of `path` below a directory that it is in. */
const below = (path: Raw, directory: Raw): Raw => path.slice(directory === '/' ? 1 : directory.length + 1)
const joined = (directory: Raw, path: Raw): Raw =>
  path === '' ? directory : `${directory === '/' ? '' : directory}/${path}`

export interface MountOf {
  /** What of its filesystem is shown; not in older notes. */
  root?: Raw
  point: Raw
  type: Raw
  source: Raw
  /** Of the filesystem, in hexadecimal: '' where the system does not tell; not in older notes. */
  uuid?: string
}

/** The mount that it lies on; undefined where the system does not tell. */
export function mountOf(directory: Buffer): MountOf | undefined {
  const id = mountIdOf(directory)
  const found = mounts().find(mount => mount.id === id)
  if (!found) return undefined
  return { root: found.root, point: found.point, type: found.type, source: found.source, uuid: uuidOf(directory) }
}

/** The ZFS dataset that it lies on; undefined: on none. Throws nothing, and '' where the system does not tell. */
export function datasetAt(directory: Buffer): Raw | undefined {
  const mount = mountOf(directory)
  if (!mount) return ''
  return isOnZfs(mount) ? mount.source : undefined
}

/** Which mount it lies on: none before or after, also after a restart of the machine, is the same. undefined where the system does not tell. */
export function lastingMountOf(directory: Buffer): string | undefined {
  const mount = onOpened(directory, fd => addon.uniqueMount(fd)) ?? 0n
  if (mount === 0n) return undefined
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()}:${mount}`
  } catch {
    return undefined
  }
}

const uuidOf = (directory: Buffer): string => onOpened(directory, fd => addon.filesystemId(fd).toString('hex')) ?? ''

/** Where the source is any word that whoever mounts it likes. */
const NAMELESS = new Set(['tmpfs', 'ramfs', 'overlay'])
const ZFS_TYPES = new Set(['zfs', 'fuse.zfs'])

export const isOnZfs = ({ type }: MountOf): boolean => ZFS_TYPES.has(type)

/** Where the system does not tell, it may be. */
export function isMountedNow(noted: MountOf): boolean {
  const all = mounts()
  return all.length === 0 || all.some(mount => isShownBy(mount, noted))
}

/** What hides it from who looks for the directory, although it is mounted: at the same place, in it, or over a directory above. */
export function mountHiding(noted: MountOf, directory: Buffer): Pick<MountOf, 'source' | 'point'> | undefined {
  const all = mounts()
  const id = mountIdOf(directory)
  const now = all.find(mount => mount.id === id)
  if (!now || isShownBy(now, noted) || !all.some(mount => isShownBy(mount, noted))) return undefined
  return isWithin(now.point, noted.point) || isWithin(noted.point, now.point) ? now : undefined
}

/**
 * A disk may have another name each time, and another one its name; a pool may be imported under another; everything else is told by its own. What was
 * mounted over itself, as sandboxes do, is shown by the mount around it, too.
 */
function isShownBy(mount: Mount, { root, point, type, source, uuid }: MountOf): boolean {
  const isDisk = source.startsWith('/dev/')
  const inPool = (dataset: Raw) => dataset.replace(/^[^/]*/, '')
  const isIt = () =>
    (mount.source === source && !isDisk) ||
    NAMELESS.has(type) ||
    (isDisk && mount.source.startsWith('/dev/') && mayBe(mount, source, uuid)) ||
    (ZFS_TYPES.has(type) && inPool(mount.source) === inPool(source))
  const showsIt =
    mount.point === point || (isWithin(point, mount.point) && joined(mount.root, below(point, mount.point)) === root)
  return mount.type === type && showsIt && isIt()
}

/** Whether it is that filesystem, as far as both are told. One that another hides cannot be asked, and has its name until it is unmounted. */
function mayBe({ id, point, source: name }: Mount, source: Raw, uuid: string | undefined): boolean {
  const place = rawToBytes(point)
  const shown = mountIdOf(place)
  if (shown !== undefined && shown !== id) return name === source
  const here = uuid ? uuidOf(place) : ''
  return here === '' || here === uuid
}

/** Filesystems whose files lie in memory, and so in no target but one that lies there, too. */
const IN_MEMORY = new Set(['tmpfs', 'ramfs', 'proc', 'sysfs', 'devpts', 'devtmpfs', 'mqueue', 'cgroup2'])
/** Not in Node's list. */
const O_PATH = 0o10000000

/** Whether nothing of the filesystem of `target`, nor of one that may show it, lies at a place or below, as another process sees it. */
export function isApart(target: Buffer, place: Buffer, pid: number): boolean {
  const own = mountIdOf(target)
  const device = mounts().find(({ id }) => id === own)?.device
  const theirs = mounts(pid)
  const isElsewhere = (mount: Mount) => IN_MEMORY.has(mount.type) && mount.device !== device
  const fd = openSync(place, O_PATH)
  try {
    const at = theirs.find(({ id }) => id === mountOfFd(fd))
    const path = readlinkSync(`/proc/self/fd/${fd}`, 'latin1')
    return at !== undefined && [at, ...theirs.filter(({ point }) => isWithin(point, path))].every(isElsewhere)
  } finally {
    closeSync(fd)
  }
}

const mountOfFd = (fd: number): string | undefined =>
  /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]

const mountIdOf = (directory: Buffer): string | undefined => onOpened(directory, mountOfFd)

/** undefined where it cannot be opened, or asked. */
function onOpened<T>(directory: Buffer, ask: (fd: number) => T): T | undefined {
  let fd: number | undefined
  try {
    fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
    return ask(fd)
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

interface Mount {
  id: string
  device: string
  /** What of its filesystem is shown. */
  root: Raw
  point: Raw
  type: Raw
  source: Raw
  options: Raw
}

function mounts(process: number | 'self' = 'self'): Mount[] {
  let table: string
  try {
    table = readFileSync(`/proc/${process}/mountinfo`, 'latin1')
  } catch {
    return []
  }
  if (table !== read.table) read = { table, mounts: parsed(table) }
  return read.mounts
}

/** The table that was read last: it seldom changes. */
let read: { table: string; mounts: Mount[] } = { table: '', mounts: [] }

const parsed = (table: string): Mount[] =>
  table.split('\n').flatMap(line => {
    const fields = line.split(' ')
    const [id, , device, root, point] = fields
    // How many there are before the dash differs; the type comes first after it.
    const [type = '', source = '', options = ''] = fields.slice(fields.indexOf('-', 6) + 1)
    if (point === undefined) return []
    const place = { root: unescaped(root!), point: unescaped(point), source: unescaped(source) }
    return [{ id: id!, device: device!, ...place, type, options }]
  })

const unescaped = (field: string): Raw =>
  field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
