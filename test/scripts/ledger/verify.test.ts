import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { SHORT_LIVED } from '../../support/nodeFlags.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { emptyFolder, ledger, tidyUp } from './fixtures.ts'

const LEDGER = fileURLToPath(new URL('../../../scripts/ledger.ts', import.meta.url))

/** The exit code of a command whose results go to a device that is always full. */
const codeOnFullDisk = async (args: readonly string[], dataDir: string): Promise<number | null> => {
  const full = await open('/dev/full', 'w')
  const env = { ...process.env, LEDGER_DATA_DIR: dataDir }
  const child = spawn(process.execPath, [...SHORT_LIVED, LEDGER, ...args], {
    env,
    stdio: ['ignore', full.fd, 'ignore'],
  })
  const code = await new Promise<number | null>(resolve => child.once('close', resolve))
  await full.close()
  return code
}

describe('npm run ledger -- verify', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })
  after(tidyUp)

  it('reports that the tables are made from the log', async () => {
    const { code, stdout } = await ledger(['verify', '--only', 'log', '--json'])
    expect(code).to.equal(0)
    const { ok, checks } = JSON.parse(stdout)
    expect(ok).to.equal(true)
    expect(checks[0]).to.include({ check: 'log' })
    expect(checks[0].findings).to.deep.equal([])
  })

  it('prints one line for each check', async () => {
    const { stdout } = await ledger(['verify', '--only', 'log'])
    expect(stdout).to.match(/^ok {2}log {2}The tables are of the log [0-9a-f-]{36}\.\n$/)
  })

  it('refuses the name of a check that does not exist, and lists the checks', async () => {
    const { code, stderr } = await ledger(['verify', '--only', 'nothing'])
    expect(code).to.equal(1)
    expect(stderr).to.match(/^There is no check "nothing": log/)
  })

  it('prints how to start the service when none runs', async () => {
    const { code, stderr } = await ledger(['verify'], await emptyFolder())
    expect(code).to.equal(1)
    expect(stderr).to.match(/^No service runs on .*npm start/)
  })

  it('ends with code 1 when its results cannot be written', async () => {
    expect(await codeOnFullDisk(['verify', '--only', 'log'], service.dataDir)).to.equal(1)
  })
})
