/** Which process of this machine is at the other end of a TCP connection, so that a command of a run is known as such. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Socket } from 'node:net'

/** undefined: it is on another machine, or may not be looked at. */
export function tcpPeer({ localPort, remotePort }: Pick<Socket, 'localPort' | 'remotePort'>): number | undefined {
  if (localPort === undefined || remotePort === undefined) return undefined
  const inode = inodeOf(remotePort, localPort)
  return inode === undefined ? undefined : holderOf(`socket:[${inode}]`)
}

const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')

/** Its own end of the connection is the line with the ports the other way round. */
function inodeOf(local: number, remote: number): string | undefined {
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of read(file).split('\n').slice(1)) {
      const [, from, to, , , , , , , inode] = line.trim().split(/\s+/)
      if (from?.endsWith(`:${hex(local)}`) && to?.endsWith(`:${hex(remote)}`) && inode !== '0') return inode
    }
  }
  return undefined
}

function holderOf(link: string): number | undefined {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const held = readdirSync(`/proc/${pid}/fd`)
      if (held.some(fd => linkOf(`/proc/${pid}/fd/${fd}`) === link)) return Number(pid)
    } catch {
      // Gone, or somebody else's.
    }
  }
  return undefined
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}
