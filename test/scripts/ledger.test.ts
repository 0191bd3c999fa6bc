import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { embeddedIssuerOf } from '../../scripts/ledger/apiClient.ts'
import { aligned } from '../../scripts/ledger/table.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { readConfig } from '../../src/settings/config.ts'
import { clientOf } from '../support/client.ts'
import { sharedService, type TestService } from '../support/service.ts'
import { newDatabase } from '../support/postgres.ts'
import { closedPort, emptyFolder, ledger, tidyUp } from './ledger/fixtures.ts'

const TENANT = 'operators'

describe('npm run ledger', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })
  after(tidyUp)

  it('has a help text for each command, which mentions --json', async () => {
    for (const command of [
      ['doctor'],
      ['streams', 'show'],
      ['tenants', 'suspend'],
      ['tenants', 'revoke-scope'],
      ['token'],
    ]) {
      const { code, stdout } = await ledger([...command, '--help'])
      expect(code).to.equal(0)
      expect(stdout)
        .to.include(`Usage: ledger ${command.join(' ')}`)
        .and.to.include('--json')
    }
    expect((await ledger(['--help'])).stdout).to.match(/doctor[^]*keys[^]*streams[^]*token/)
  })

  it('refuses an unknown command, and suggests a similar one', async () => {
    const { code, stdout, stderr } = await ledger(['docter'])
    expect([code, stdout]).to.deep.equal([2, ''])
    expect(stderr).to.include('doctor')
  })

  it('reports an invalid setting in one sentence', async () => {
    const { code, stderr } = await ledger(['doctor'], service.dataDir, { PORT: 'x' })
    expect(code).to.equal(2)
    expect(stderr).to.equal('PORT=x is not valid: expected a port number from 0 to 65535.\n')
  })

  it('reports an unreadable address file in one sentence', async () => {
    const folder = await emptyFolder()
    await writeFile(join(folder, 'addresses.json'), '{"api":')
    const { code, stderr } = await ledger(['doctor'], folder)
    expect(code).to.equal(2)
    expect(stderr).to.equal(`The addresses in ${folder} cannot be read: restart the service.\n`)
  })

  it('ends with code 2 after wrong usage and where a store does not answer, and with 1 after a finding', async () => {
    const { event_store } = service.addresses
    const folder = await emptyFolder()
    const down = `postgres://ledger@127.0.0.1:${await closedPort()}/ledger`
    const empty = await newDatabase()
    for (const [expected, args, env] of [
      [2, ['verify', '--onyl', 'log'], {}],
      [2, ['tenants', 'suspend', 'acme'], {}],
      [2, ['export', '--evidence', '--out'], {}],
      [2, ['verify', '--only', 'log'], { EVENTSTORE_URL: event_store, DATABASE_URL: down }],
      [1, ['verify', '--only', 'log'], { EVENTSTORE_URL: event_store, DATABASE_URL: empty }],
    ] as const)
      expect((await ledger(args, folder, env)).code, args.join(' ')).to.equal(expected)
  })

  it('names its target on stderr, without passwords', async () => {
    const { api, event_store, postgres } = service.addresses
    const { password } = new URL(postgres)
    const shown = `event store ${event_store}, Postgres ${postgres.replace(password, '…')}`
    const args = ['verify', '--only', 'log']
    const { target } = await ledger(args)
    expect(target).to.equal(`Target: the service on ${service.dataDir}: API ${api}, ${shown}\n`)
    const folder = await emptyFolder()
    const stores = { PORT: '8080', EVENTSTORE_URL: event_store, DATABASE_URL: postgres }
    const configured = await ledger(args, folder, stores)
    expect(configured.target).to.equal(`Target: the configured services: API http://localhost:8080, ${shown}\n`)
    const nothing = await ledger(['clients', 'list'], folder)
    expect(nothing.target).to.equal(`Target: the data directory ${folder}, without a service\n`)
  })

  it('refuses settings that name other dependencies than the running service has', async () => {
    const { event_store, postgres } = service.addresses
    const other = { event_store: 'esdb://elsewhere:2113', postgres: 'postgres://ledger:secret@elsewhere/ledger' }
    const same = { EVENTSTORE_URL: event_store, DATABASE_URL: postgres }
    expect((await ledger(['verify', '--only', 'log'], service.dataDir, same)).code).to.equal(0)
    for (const [setting, value, used] of [
      ['EVENTSTORE_URL', other.event_store, `uses ${event_store}`],
      ['DATABASE_URL', other.postgres, `uses ${postgres.replace(new URL(postgres).password, '…')}`],
      ['KAFKA_BROKERS', 'elsewhere:9092', 'has none'],
    ] as const) {
      const { code, stdout, stderr } = await ledger(['verify'], service.dataDir, { ...same, [setting]: value })
      expect([code, stdout], setting).to.deep.equal([2, ''])
      expect(stderr).to.equal(
        `${setting} is ${value.replace('secret', '…')}, and the service that runs on ${service.dataDir} ${used}: ` +
          'unset it to mean this service, or name another data directory by LEDGER_DATA_DIR.\n',
      )
    }
  })

  it('does not take a process for the service that has left its pid', async () => {
    const folder = await emptyFolder()
    const pids = { ...service.addresses.pids, service: process.pid }
    await writeFile(join(folder, 'addresses.json'), JSON.stringify({ ...service.addresses, pids }))
    await writeFile(join(folder, 'lock'), '')
    await writeFile(join(folder, 'lock.pid'), `${process.pid}\n`)
    const { code, stderr } = await ledger(['verify'], folder)
    expect(code).to.equal(2)
    expect(stderr).to.match(/^No service is running on /)
  })

  describe('token', () => {
    const args = ['token', '--tenant', TENANT, '--subject', 'me', '--scope', 'orders:read']

    it('prints only a token, which the API accepts', async () => {
      const { stdout, stderr } = await ledger(args)
      expect(stderr).to.equal('')
      expect(stdout).to.match(/^\S+\n$/)
      expect((await clientOf(service.api, stdout.trim()).get('/orders')).status).to.equal(200)
    })

    it('prints it as JSON with its lifetime', async () => {
      const workload = JSON.parse((await ledger([...args, '--json'])).stdout)
      expect(workload).to.include({ token_type: 'Bearer', expires_in: 300, scope: 'orders:read' })
      expect((await clientOf(service.api, workload.access_token).get('/orders')).status).to.equal(200)
      expect(JSON.parse((await ledger([...args, '--user', '--json'])).stdout).expires_in).to.equal(900)
    })

    it('refuses to print one for an external issuer', async () => {
      const env = { OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: 'payment-ledger' }
      const external = await ledger(args, await emptyFolder(), env)
      expect([external.code, external.stdout]).to.deep.equal([2, ''])
      expect(external.stderr).to.match(/^OIDC_ISSUER is set: get a token from that issuer/)
    })

    it('refuses to print one where no service runs, though an issuer has left its key there', async () => {
      const folder = await emptyFolder()
      await cp(join(service.dataDir, 'issuer'), join(folder, 'issuer'), { recursive: true })
      const { code, stdout, stderr } = await ledger(args, folder)
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(/^No service is running on \S+\. Run npm start/)
    })

    it('names no issuer of its own where the running service has an external one', () => {
      const config = readConfig({})
      const issuerOf = (issuer: string) => () => embeddedIssuerOf({ config, running: { ...service.addresses, issuer } })
      expect(issuerOf(service.addresses.issuer)()).to.equal(service.addresses.issuer)
      expect(issuerOf('https://issuer.example')).to.throw(StartupError, /accepts tokens of https:\/\/issuer\.example/)
    })

    it('refuses an unknown scope', async () => {
      const { code, stdout, stderr } = await ledger([...args.slice(0, -1), 'orders:own'])
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' })
      expect(stderr).to.match(/^There is no scope "orders:own"\. The scopes are orders:read, [^\n]+\.\n$/)
    })
  })

  it('aligns columns', () => {
    const rows = [
      ['', 'planned', 'found'],
      ['paid', '1', '12345678'],
    ]
    expect(aligned(rows)).to.deep.equal(['      planned  found', 'paid  1        12345678'])
    expect(aligned(rows, 'right')).to.deep.equal(['      planned     found', 'paid        1  12345678'])
  })
})
