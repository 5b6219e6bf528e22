/** Preloaded into a command (`node --import`): Ctrl-C comes when it reaches the failpoint that $INTERRUPT_AT names. */
import { onFailpoint } from '../../src/store/failpoint.ts'

const stop = onFailpoint(process.env.INTERRUPT_AT!, () => {
  stop()
  process.kill(process.pid, 'SIGINT')
})
