import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type TestNode, startTestNode } from '../embedded/eventStoreNode.ts'
import { endPrograms, runProgram } from '../embedded/childProcesses.ts'

const APPEND_ONCE = fileURLToPath(new URL('./appendOnce.ts', import.meta.url))
const HOUR_MS = 3_600_000

describe('EventStoreDB adapter', () => {
  let node: TestNode

  before(async () => {
    node = await startTestNode()
  })
  after(async () => {
    await endPrograms()
    await node.stop()
  })

  for (const [name, offsetMs, leapMs] of [
    ['4 s behind that of the store', -4_000, 0],
    ['2 h behind that of the store', -2 * HOUR_MS, 0],
    ['2 h ahead of that of the store', 2 * HOUR_MS, 0],
    ['set forward repeatedly', 0, HOUR_MS],
    ['set back repeatedly', 0, -HOUR_MS],
  ] as const)
    it(`appends while its clock is ${name}`, async () => {
      const program = runProgram([APPEND_ONCE, node.address, String(offsetMs), String(leapMs)])
      expect(await program.exited).to.include({ code: 0 })
    })
})
