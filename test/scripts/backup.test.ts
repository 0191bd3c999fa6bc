import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { Client as PostgresClient } from 'pg'
import { approvedInvoice, aPayment, type Client, clientOf, newKey } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../support/service.ts'
import { type Run, start } from './cli.ts'

/** `backup` beside other programs, and the development half of BACKUP.md, followed word for word while clients write. */

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

describe('npm run ledger -- backup', () => {
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

  const backup = (out: string): Run =>
    start('ledger.ts', ['backup', '--out', join(folder, out), '--json'], { LEDGER_DATA_DIR: join(folder, 'data') })

  const namesOf = async (out: string): Promise<readonly string[]> =>
    (await readdir(folder)).filter(name => name.startsWith(out))

  /** The unfinished folder of a backup, once it has a file of the data directory. */
  const unfinishedOf = (out: string): Promise<string> =>
    eventually(async () => {
      for (const name of await namesOf(`${out}.unfinished`))
        if ((await readdir(join(folder, name, 'postgres')).catch((): string[] => [])).includes('password'))
          return join(folder, name)
      return undefined
    })

  const slots = async (): Promise<number> => {
    const client = new PostgresClient({ connectionString: service.addresses.postgres })
    await client.connect()
    try {
      const { rows } = await client.query<{ count: number }>('select count(*)::int as count from pg_replication_slots')
      return rows[0]?.count ?? 0
    } finally {
      await client.end()
    }
  }

  const filesIn = async (out: string): Promise<number> =>
    (await readdir(join(folder, out), { recursive: true, withFileTypes: true })).filter(entry => entry.isFile()).length

  it('lets one of two at once have the name, with all its files', async () => {
    const first = backup('both')
    await unfinishedOf('both')
    const ended = await Promise.all([first.ended, backup('both').ended])
    expect(ended.map(({ code }) => code)).to.have.members([0, 2])
    const [made, refused] = ended.toSorted((a, b) => Number(a.code) - Number(b.code))
    expect(refused?.stderr).to.match(/ already exists: |Another backup of this service is running: /)
    expect(JSON.parse(made?.stdout ?? '')).to.deep.equal({ backup: join(folder, 'both'), files: await filesIn('both') })
    expect(await namesOf('both')).to.deep.equal(['both'])
  })

  it('refuses a name that another program has taken meanwhile, and leaves that folder as it is', async () => {
    const { ended } = backup('taken')
    await unfinishedOf('taken')
    await mkdir(join(folder, 'taken'))
    await writeFile(join(folder, 'taken', 'file'), '')
    const { code, stderr } = await ended
    expect(code).to.equal(2)
    expect(stderr).to.include('taken already exists. Name a new folder for the backup.')
    expect(await namesOf('taken')).to.deep.equal(['taken'])
    expect(await readdir(join(folder, 'taken'))).to.deep.equal(['file'])
  })

  it('refuses a copy from which another program has removed a file', async () => {
    const { ended } = backup('changed')
    await rm(join(await unfinishedOf('changed'), 'postgres', 'password'))
    const { code, stderr } = await ended
    expect(code).to.equal(2)
    expect(stderr).to.include('another program has changed the copy.')
    expect(await namesOf('changed')).to.deep.equal([])
  })

  for (const [signal, left] of [
    ['SIGINT', 0],
    ['SIGKILL', 1],
  ] as const)
    it(`keeps no replication slot after ${signal}`, async () => {
      const { child, ended } = backup(signal)
      await eventually(async () => (await slots()) > 0)
      child.kill(signal)
      expect((await ended).code).to.equal(signal === 'SIGINT' ? 130 : signal)
      await eventually(async () => (await slots()) === 0)
      expect(await namesOf(signal)).to.have.lengthOf(left)
    })

  it('refuses a folder in the data directory, also through a symbolic link, and makes nothing there', async () => {
    const before = await readdir(join(folder, 'data'))
    await symlink(join(folder, 'data'), join(folder, 'linked'))
    for (const out of ['data/new/backup', 'linked/backup']) {
      const { code, stderr } = await backup(out).ended
      expect(code).to.equal(2)
      expect(stderr).to.include(` is in the data directory, ${join(folder, 'data')}: `)
    }
    expect(await readdir(join(folder, 'data'))).to.have.members(before)
  })

  it('refuses a Postgres with tablespaces', async () => {
    const link = join(folder, 'data/postgres/cluster/pg_tblspc/1')
    await symlink(folder, link)
    const { code, stderr } = await backup('tablespaces').ended
    await rm(link)
    expect(code).to.equal(2)
    expect(stderr).to.include('Postgres has tablespaces, ')
  })

  it('is restored with every invariant true by the steps of BACKUP.md', async () => {
    const writer = await clientFor(service)
    const writing = Promise.all(Array.from({ length: WRITERS }, () => write(writer)))
    writing.catch(() => undefined)
    await eventually(async () => paid.length >= PAID_BEFORE_MIN)
    const before = [...paid]
    await follow('backup')
    await eventually(async () => paid.length > before.length)
    expect(await refusal()).to.match(/ already exists. Name a new folder for the backup\.$/m)
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
    expect(checked.stdout).to.include('No problems were found.')
  })

  it('does not begin with a backup while no service runs', async () => {
    expect(await refusal()).to.match(/^No service with an embedded Postgres runs on .*BACKUP\.md/m)
  })
})
