import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'
import { endPrograms, runProgram } from '../embedded/childProcesses.ts'

const APPEND_ONCE = fileURLToPath(new URL('./appendOnce.ts', import.meta.url))
const HOUR_MS = 3_600_000

describe('EventStoreDB adapter with a clock that differs from that of the store', function () {
  this.timeout(60_000)
  let node: TestNode

  before(async () => {
    node = await startTestNode()
  })
  after(async () => {
    await endPrograms()
    await node.stop()
  })

  for (const [name, offsetMs, leapMs] of [
    ['4 s behind', -4_000, 0],
    ['2 h behind', -2 * HOUR_MS, 0],
    ['2 h ahead', 2 * HOUR_MS, 0],
    ['set forward again and again while it appends', 0, HOUR_MS],
    ['set back again and again while it appends', 0, -HOUR_MS],
  ] as const)
    it(`appends: ${name}`, async () => {
      const program = runProgram([APPEND_ONCE, node.address, String(offsetMs), String(leapMs)])
      expect(await program.exited).to.include({ code: 0 })
    })
})
