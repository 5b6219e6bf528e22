/** A process of nobody's run that has a file mapped into memory, and stores there what it is told. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const program = `
import mmap, os, sys
file = open(sys.argv[1], 'r+b')
os.fsync(file.fileno())
memory = mmap.mmap(file.fileno(), 0)
file.close()
print('mapped', flush=True)
for line in sys.stdin:
  text = line.strip().encode()
  if text: memory[0:len(text)] = text
  else: memory[0]
  print('stored', flush=True)
`

export class MappedFile {
  private readonly child: ChildProcess
  private readonly answers: AsyncIterator<string>

  private constructor(path: string) {
    this.child = spawn('python3', ['-c', program, path], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.answers = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]()
  }

  /** The file must not be empty. */
  static async open(path: string): Promise<MappedFile> {
    const mapped = new MappedFile(path)
    await mapped.answers.next()
    return mapped
  }

  /** At the beginning of the file. */
  async store(text: string): Promise<void> {
    this.child.stdin!.write(`${text}\n`)
    await this.answers.next()
  }

  /** Reads the first page. In a tmpfs it can be stored to from then on without a fault, which moves no timestamp. */
  async look(): Promise<void> {
    await this.store('')
  }

  async unmap(): Promise<void> {
    if (this.child.exitCode !== null) return
    this.child.stdin!.end()
    await once(this.child, 'exit')
  }
}
