/** A real terminal for a command: a pseudo-terminal made by python3, driven by what appears on it. */
import { spawn, spawnSync } from 'node:child_process'

export const hasTerminal: boolean = spawnSync('python3', ['-c', 'import pty, termios']).status === 0

export interface Step {
  /** A regular expression to wait for in what was written since the step before. */
  wait: string
  /** Typed then; "\x03" is Ctrl-C, "\x1a" Ctrl-Z. */
  type?: string
  /** The window gets this size then. */
  resize?: { rows: number; columns: number }
  /** Sent to the process that was started. */
  signal?: number
}

export interface TerminalResult {
  /** Everything that was written to the terminal. */
  output: string
  /** Exit code, or minus the signal. */
  status: number
  /** Whether every step was reached. */
  complete: boolean
}

const driver = `
import fcntl, json, os, pty, re, select, struct, sys, termios, time
job = json.load(sys.stdin)
pid, fd = pty.fork()
if pid == 0:
    os.chdir(job['cwd'])
    os.execvpe(job['command'][0], job['command'], job['env'])
def resize(rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
resize(24, 80)
output, seen, steps, deadline = '', 0, job['steps'], time.time() + job['timeoutSeconds']
while time.time() < deadline:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b''
        if not data:
            break
        output += data.decode('utf-8', 'replace')
    while steps:
        found = re.compile(steps[0]['wait']).search(output, seen)
        if not found:
            break
        seen = found.end()
        step = steps.pop(0)
        if 'resize' in step:
            resize(step['resize']['rows'], step['resize']['columns'])
        if 'type' in step:
            os.write(fd, step['type'].encode())
        if 'signal' in step:
            os.kill(pid, step['signal'])
else:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
json.dump({'output': output, 'status': code, 'complete': not steps}, sys.stdout)
`

/** Runs `command` as the leader of a terminal of 24 by 80, carries out the steps one by one, and waits for its end. */
export async function onTerminal(
  command: string[],
  steps: Step[],
  options: { cwd: string; env: NodeJS.ProcessEnv; timeoutSeconds?: number },
): Promise<TerminalResult> {
  const child = spawn('python3', ['-c', driver], { stdio: ['pipe', 'pipe', 'inherit'] })
  const env = { ...options.env, TERM: 'xterm', NO_COLOR: '1', PS1: '$ ' }
  child.stdin.end(
    JSON.stringify({ command, steps, cwd: options.cwd, env, timeoutSeconds: options.timeoutSeconds ?? 120 }),
  )
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString()) as TerminalResult
}
