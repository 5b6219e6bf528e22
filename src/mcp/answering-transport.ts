/**
 * The stdio transport of the SDK forgets what is being worked on when its input ends. Whoever pipes requests into us wants
 * the answers, and a change of files that was asked for is not to be torn off: here the end of the input waits for both.
 */
import { PassThrough, type Readable, type Writable } from 'node:stream'
import type { JSONRPCMessage, MessageExtraInfo, RequestId, Transport } from '@modelcontextprotocol/server'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'

/** Answered only when the connection ends. */
const neverAnswered = new Set(['subscriptions/listen'])

export class AnsweringTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void
  /** When nothing comes and nothing goes any more. */
  readonly closed: Promise<void>
  readonly #input: Readable
  readonly #lines = new PassThrough()
  readonly #inner: StdioServerTransport
  readonly #unanswered = new Set<RequestId>()
  #isEnding = false
  #markClosed = () => {}

  constructor(input: Readable, output: Writable) {
    this.#input = input
    this.#inner = new StdioServerTransport(this.#lines, output)
    this.closed = new Promise(resolve => {
      this.#markClosed = resolve
    })
  }

  async start(): Promise<void> {
    this.#inner.onerror = error => this.onerror?.(error)
    this.#inner.onclose = () => {
      this.#markClosed()
      this.onclose?.()
    }
    this.#inner.onmessage = (message: JSONRPCMessage) => {
      this.#count(message)
      this.onmessage?.(message)
    }
    await this.#inner.start()
    this.#input.pipe(this.#lines, { end: false })
    for (const event of ['end', 'close', 'error']) this.#input.once(event, () => this.finish())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#inner.send(message)
    if ('id' in message && !('method' in message) && message.id !== undefined) this.#answered(message.id)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  /** No more requests; ends when the last of them is answered. */
  finish(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#input.unpipe(this.#lines)
    // What was read before the end is on its way through the stream.
    this.#lines.write('\n', () => setImmediate(() => this.#endIfAnswered()))
  }

  #count(message: JSONRPCMessage): void {
    if (!('method' in message)) return
    if ('id' in message && !neverAnswered.has(message.method)) this.#unanswered.add(message.id)
    // A request that was cancelled gets no answer.
    if (message.method === 'notifications/cancelled') {
      const id = message.params?.requestId as RequestId | undefined
      if (id !== undefined) this.#answered(id)
    }
  }

  #answered(id: RequestId): void {
    this.#unanswered.delete(id)
    this.#endIfAnswered()
  }

  #endIfAnswered(): void {
    if (this.#isEnding && this.#unanswered.size === 0 && !this.#lines.writableEnded) this.#lines.end()
  }
}
