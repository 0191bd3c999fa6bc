import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type ChildProcess, startProcess } from '../../src/childProcesses/childProcess.ts'
import { eventually } from '../support/eventually.ts'

/** Real processes, which are asked more often than in production: a process that hangs for 30 questions is killed. */

const ASK_EVERY_MS = 200
const SILENT_MS = 5 * ASK_EVERY_MS
const HUNG_MS = 30 * ASK_EVERY_MS

describe('a process that the primary asks whether it answers', () => {
  let requested: ChildProcess
  let events: string[]
  const signal = (sent: NodeJS.Signals): void => void process.kill(requested.pid, sent)
  /** It answers before it has its settings. */
  const answer = (): Promise<unknown> => requested.call('ping')

  beforeEach(async () => {
    events = []
    requested = startProcess({
      module: new URL('../../src/cluster/child.ts', import.meta.url),
      ask: call => call('ping', ...([[]] as never[])),
      onAnswer: () => events.push('serving'),
      onSilent: () => events.push('silent'),
      askEveryMs: ASK_EVERY_MS,
    })
    await answer()
  })
  afterEach(async () => {
    requested.kill()
    await requested.ended
  })

  it('is killed when it hangs', async () => {
    signal('SIGSTOP')
    expect((await requested.ended).how).to.equal('SIGKILL, because it did not answer')
    expect([events, requested.isAnswering()]).to.deep.equal([['silent'], false])
  })

  it('serves again when it answers again', async () => {
    signal('SIGSTOP')
    await eventually(() => !requested.isAnswering())
    signal('SIGCONT')
    await eventually(() => requested.isAnswering())
    // On a busy machine it may be silent again.
    expect(events.slice(0, 2)).to.deep.equal(['silent', 'serving'])
  })

  it('is not killed for being busy again and again, for longer in all than a process may hang', async () => {
    for (let busyMs = 0; busyMs < HUNG_MS; busyMs += 2 * SILENT_MS) {
      signal('SIGSTOP')
      await sleep(2 * SILENT_MS)
      signal('SIGCONT')
      await answer()
    }
    await eventually(() => requested.isAnswering())
  })

  it('is not killed after the machine was suspended', async () => {
    signal('SIGSTOP')
    // This process does nothing meanwhile, like a primary that is suspended too.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HUNG_MS + SILENT_MS)
    // Its first question is due before the child runs again.
    await sleep(ASK_EVERY_MS / 2)
    signal('SIGCONT')
    await answer()
    expect(requested.isAnswering()).to.equal(true)
  })
})
