/**
 * `bench:api`, the part over HTTP: how many requests a server answers from clients that keep their connections, and how
 * fast. A process of its own makes the load, so that it does not share a thread with what it measures:
 * node http-load.ts URL TOKEN SECONDS
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { argv, execPath, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

export const CLIENTS = 32

/** What is asked, and how often of a thousand: as those do who watch a target, and look closer now and then. */
export const mix: readonly [path: string, share: number][] = [
  ['/v1/head', 300],
  ['/v1/snapshots?limit=20', 200],
  ['/v1/tags', 100],
  ['/v1/branches', 100],
  ['/v1/runs', 100],
  ['/v1/operations', 100],
  ['/v1/show', 40],
  ['/v1/read?path=d1/f1', 40],
  ['/v1/log', 15],
  ['/v1/status', 5],
]

export interface Load {
  perSecond: number
  requests: number
  failed: number
  medianMs: number
  p99Ms: number
}

/** The load of `CLIENTS` clients that each ask again as soon as they are answered. */
export async function underLoad(url: string, token: string, seconds: number): Promise<Load> {
  const child = spawn(execPath, [fileURLToPath(import.meta.url), url, token, String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', chunk => (text += chunk))
  await once(child, 'close')
  return JSON.parse(text) as Load
}

/** A server that does nothing but answer the same bytes: what HTTP alone costs here. */
export async function bareServer(url: string, token: string): Promise<{ url: string; close(): void }> {
  const answers = new Map<string, string>()
  for (const [path] of mix) answers.set(path, (await ask(url, path, token, undefined)).text)
  const server = createServer((asked, answer) => {
    answer.writeHead(200, { 'content-type': 'application/json' })
    answer.end(answers.get(asked.url!))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

function ask(url: string, path: string, token: string, agent: Agent | undefined) {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const onAnswer = (answer: IncomingMessage) => {
      const chunks: Buffer[] = []
      answer
        .on('data', chunk => chunks.push(chunk))
        .on('end', () => resolve({ status: answer.statusCode!, text: Buffer.concat(chunks).toString() }))
        .on('error', reject)
    }
    request(`${url}${path}`, { agent, headers: { authorization: `Bearer ${token}` } }, onAnswer)
      .on('error', reject)
      .end()
  })
}

async function makeLoad(url: string, token: string, seconds: number): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  const paths = mix.flatMap(([path, share]) => Array.from({ length: share }, () => path))
  const times: number[] = []
  let failed = 0
  let next = 0
  const end = performance.now() + seconds * 1000
  const client = async () => {
    while (performance.now() < end) {
      // 37 and their number have no divisor in common: all are asked, in turn and not in blocks.
      const path = paths[(next++ * 37) % paths.length]!
      const start = performance.now()
      const isRight = await ask(url, path, token, agent).then(
        ({ status, text }) => status === 200 && /^[[{]/.test(text),
        () => false,
      )
      times.push(performance.now() - start)
      if (!isRight) failed++
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  agent.destroy()
  times.sort((a, b) => a - b)
  const at = (part: number) => times[Math.floor(times.length * part)]!
  return { perSecond: times.length / seconds, requests: times.length, failed, medianMs: at(0.5), p99Ms: at(0.99) }
}

if (argv[1] === fileURLToPath(import.meta.url))
  stdout.write(JSON.stringify(await makeLoad(argv[2]!, argv[3]!, Number(argv[4]))))
