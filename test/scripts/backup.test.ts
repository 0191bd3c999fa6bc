import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { approvedInvoice, aPayment, type Client, clientOf, newKey } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'

/** The development half of BACKUP.md, followed word for word while clients write. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TENANT = 'backup'
const WRITERS = 4
/** Settings of the test run itself; an empty one is none. */
const NO_EXTERNAL_STORES = {
  EVENTSTORE_URL: '',
  DATABASE_URL: '',
  KAFKA_BROKERS: '',
  OIDC_ISSUER: '',
  OIDC_AUDIENCE: '',
}
const PAID_BEFORE_MIN = 20

/** The commands of a block of the page, such as ```` ```sh backup ````. */
const commandsOf = async (block: string): Promise<string> => {
  const page = await readFile(join(ROOT, 'scripts/ledger/BACKUP.md'), 'utf8')
  const [, commands] = new RegExp(`^\`\`\`sh ${block}\n([^]*?)^\`\`\`$`, 'm').exec(page) ?? []
  return commands ?? expect.fail(`BACKUP.md has no block ${block}`)
}

type Paid = { readonly key: string; readonly request: Record<string, unknown>; readonly payment: { id: string } }

describe('the restore drill of BACKUP.md', () => {
  let folder: string
  let service: ServiceProcess
  let restored: ServiceProcess | undefined
  const paid: Paid[] = []
  let isWriting = true

  before(async () => {
    folder = await temporaryDirectory()
    service = await startProcess(join(folder, 'data'))
  })
  after(async () => {
    isWriting = false
    await service.end('SIGKILL')
    await restored?.end('SIGTERM')
    await removeFolder(folder)
  })

  const follow = async (block: string) => {
    const env = {
      ...process.env,
      ...NO_EXTERNAL_STORES,
      LEDGER_DATA_DIR: join(folder, 'data'),
      BACKUP: join(folder, 'backup'),
      RESTORED: join(folder, 'restored'),
    }
    const commands = await commandsOf(block)
    return promisify(execFile)('bash', ['-euo', 'pipefail', '-c', commands], { cwd: ROOT, env })
  }

  const refusal = async (): Promise<string> =>
    follow('backup').then(
      () => '',
      (error: unknown) => (error as { stderr: string }).stderr,
    )

  /** Pays one invoice after the other until the service is killed; remembers each payment that was acknowledged. */
  const write = async (client: Client): Promise<void> => {
    while (isWriting) {
      try {
        const { invoiceId } = await approvedInvoice(client)
        const key = newKey()
        const request = aPayment(invoiceId)
        const made = await client.post('/payments', request, { 'idempotency-key': key })
        if (made.status === 201) paid.push({ key, request, payment: made.body as Paid['payment'] })
      } catch (error) {
        if (isWriting) throw error
      }
    }
  }

  const clientFor = async (of: ServiceProcess): Promise<Client> => clientOf(of.api, await of.token({ tenant: TENANT }))

  it('ends with every invariant true', async () => {
    const writer = await clientFor(service)
    const writing = Promise.all(Array.from({ length: WRITERS }, () => write(writer)))
    writing.catch(() => undefined)
    await eventually(async () => paid.length >= PAID_BEFORE_MIN)
    const before = [...paid]
    await follow('backup')
    await eventually(async () => paid.length > before.length)
    expect(await refusal()).to.match(/ is there already: a backup gets a new folder\.$/m)
    isWriting = false
    await service.end('SIGKILL')
    await writing.catch(() => undefined)

    await follow('restore')
    expect(await commandsOf('start')).to.equal('LEDGER_DATA_DIR="$RESTORED" npm start\n')
    restored = await startProcess(join(folder, 'restored'))
    const client = await clientFor(restored)

    // Acknowledged before the backup began: there, unchanged, and the answer of its key.
    for (const { key, request, payment } of before) {
      const read = await client.get(`/payments/${payment.id}`)
      expect([read.status, read.body]).to.deep.equal([200, payment])
      const again = await client.post('/payments', request, { 'idempotency-key': key })
      expect([again.status, again.body]).to.deep.equal([201, payment])
      expect(again.headers.get('idempotent-replayed')).to.equal('true')
    }
    const listed = async (): Promise<string[]> => {
      const ids: string[] = []
      for (let cursor = ''; ; ) {
        const { body } = await client.get(`/payments?limit=100${cursor}`)
        ids.push(...body.items.map(({ id }: { id: string }) => id))
        if (body.page.has_more !== true) return ids
        cursor = `&cursor=${body.page.next_cursor}`
      }
    }
    await eventually(async () => {
      const ids = new Set(await listed())
      return before.every(({ payment }) => ids.has(payment.id))
    })
    const ids = await listed()
    expect(new Set(ids).size, 'no payment twice').to.equal(ids.length)
    const { body } = await client.get('/events?limit=100&type=payment.succeeded')
    const facts: { id: string; subject: string }[] = body.items
    expect(new Set(facts.map(({ id }) => id)).size).to.equal(facts.length)
    expect(new Set(facts.map(({ subject }) => subject)).size, 'one success of each payment').to.equal(facts.length)

    // The feeds may need a moment to reach the end of the log.
    const checked = await eventually(async () => follow('check').catch(() => undefined))
    expect(checked.stdout).to.include('Nothing was found wrong.')
  })

  it('does not begin with a backup while no service runs', async () => {
    expect(await refusal()).to.match(/^No service with an embedded Postgres runs on .*BACKUP\.md/)
  })
})
