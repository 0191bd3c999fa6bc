import { spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { startTestNode } from '../../embedded/eventStoreNode.ts'
import { SHORT_LIVED } from '../../support/nodeFlags.ts'
import { newDatabase } from '../../support/postgres.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { emptyFolder, ledger, tidyUp } from './fixtures.ts'

const LEDGER = fileURLToPath(new URL('../../../scripts/ledger.ts', import.meta.url))

type Checked = { readonly check: string; readonly findings: readonly { readonly kind: string }[] }

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

  it('prints one line for each check, and the verdict', async () => {
    const { stdout } = await ledger(['verify', '--only', 'log'])
    expect(stdout).to.match(/^ok {2}log {2}The tables are of the log [0-9a-f-]{36}\.\nIntact\.\n$/)
  })

  it('refuses the name of a check that does not exist, and lists the checks', async () => {
    const { code, stderr } = await ledger(['verify', '--only', 'nothing'])
    expect(code).to.equal(2)
    expect(stderr).to.match(/^There is no check "nothing"\. Choose from log/)
  })

  it('prints how to start the service when none runs', async () => {
    const { code, stderr } = await ledger(['verify'], await emptyFolder())
    expect(code).to.equal(2)
    expect(stderr).to.match(/^No service is running on .*npm start/)
  })

  it('finds that nothing was compared, where the log has events and the database is empty or another', async () => {
    const another = Object.assign(new URL(service.addresses.postgres), { pathname: '/postgres' }).href
    for (const url of [await newDatabase(), another]) {
      const env = { EVENTSTORE_URL: service.addresses.event_store, DATABASE_URL: url }
      const { code, stdout } = await ledger(['verify', '--json'], await emptyFolder(), env)
      const { ok, checks } = JSON.parse(stdout)
      expect([code, ok]).to.deep.equal([1, false])
      const actual = checks.map(({ check, findings }: Checked) => [check, findings.map(({ kind }) => kind)])
      expect(actual).to.deep.equal([
        ['log', ['not_compared']],
        ['books', ['not_compared']],
        ['evidence', ['not_compared']],
        ['texts', ['not_compared']],
      ])
    }
  })

  it('is not ok where there is nothing to compare', async () => {
    const node = await startTestNode()
    try {
      const env = { EVENTSTORE_URL: node.address, DATABASE_URL: await newDatabase() }
      const { code, stdout, stderr } = await ledger(['verify'], await emptyFolder(), env)
      expect([code, stderr]).to.deep.equal([1, ''])
      expect(stdout).to.match(/^- {2}log .*\n- {2}books .*\n- {2}evidence .*\n- {2}texts .*\nNothing was compared\.\n$/)
    } finally {
      await node.stop()
    }
  })

  it('takes times with their zone alone', async () => {
    const complaintAt = async (time: string): Promise<string> =>
      (await ledger(['verify', '/nothing', '--as-of', time])).stderr
    expect(await complaintAt('2026-01-31T12:00:00+01:00')).to.equal(
      'There is no folder /nothing. Name one that ledger export --evidence has written.\n',
    )
    for (const time of ['2026-01-31T12:00:00', '2026-01-31', 'Jan 31 2026'])
      expect(await complaintAt(time)).to.equal(
        `${time} is not a date and time with a time zone, such as 2026-01-31T12:00:00Z.\n`,
      )
  })

  it('ends with code 2 when its results cannot be written', async () => {
    expect(await codeOnFullDisk(['verify', '--only', 'log'], service.dataDir)).to.equal(2)
  })
})
