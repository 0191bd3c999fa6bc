import fs from 'node:fs'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { openLog } from '../../src/compose/serviceLog.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'

const PERIODS = 20
const PERIOD_MS = 100
/** A flush with the line, and one that finds that there is no more. */
const WRITES_OF_A_LINE_MAX = 2

describe('the log of a process', () => {
  const { write } = fs
  let dataDir: string
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'ledger-log-'))
  })
  afterEach(async () => {
    fs.write = write
    await removeFolder(dataDir)
  })
  const lines = async (): Promise<number> =>
    (await readFile(join(dataDir, 'ledger.log'), 'utf8')).split('\n').length - 1

  it('has a line soon after it was written, also after a pause, and is not written to in the pause', async () => {
    // Logs of other tests of this process may still be flushed, into files of their own.
    const written: unknown[] = []
    let own: unknown
    fs.write = ((...parameters: unknown[]) => {
      const [file, text] = parameters
      written.push(file)
      if (String(text).includes('"wanted":')) own = file
      Reflect.apply(write, fs, parameters)
    }) as typeof write
    const { logger } = await openLog({ dataDir, logLevel: 'info' })
    for (const target of [1, 2]) {
      logger.info({ wanted: target }, 'a line')
      await eventually(async () => (await lines()) === target)
      for (let period = 0; period < PERIODS; period += 1) await sleep(PERIOD_MS)
      expect(own).to.not.equal(undefined)
      expect(written.filter(file => file === own).length).to.be.at.most(target * WRITES_OF_A_LINE_MAX)
    }
  })

  it('has all lines that were written while earlier ones were', async () => {
    const { logger } = await openLog({ dataDir, logLevel: 'info' })
    const COUNT = 5_000
    for (let n = 0; n < COUNT; n += 1) {
      logger.info({ n }, 'a line')
      if (n % 50 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    await eventually(async () => (await lines()) === COUNT)
  })
})
