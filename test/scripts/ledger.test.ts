import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { aligned } from '../../scripts/ledger/table.ts'
import { clientOf } from '../support/client.ts'
import { sharedService, type TestService } from '../support/service.ts'
import { emptyFolder, ledger, tidyUp } from './ledger/fixtures.ts'

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
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.include('doctor')
  })

  it('reports an invalid setting in one sentence', async () => {
    const { code, stderr } = await ledger(['doctor'], service.dataDir, { PORT: 'x' })
    expect(code).to.equal(1)
    expect(stderr).to.equal('PORT is not usable: a port number.\n')
  })

  it('reports an unreadable address file in one sentence', async () => {
    const folder = await emptyFolder()
    await writeFile(join(folder, 'addresses.json'), '{"api":')
    const { code, stderr } = await ledger(['doctor'], folder)
    expect(code).to.equal(1)
    expect(stderr).to.equal(`The addresses in ${folder} cannot be read: restart the service.\n`)
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

    it('refuses to print one that no service takes: with an external issuer, and where no issuer has run', async () => {
      const env = { OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: 'payment-ledger' }
      const external = await ledger(args, service.dataDir, env)
      expect([external.code, external.stdout]).to.deep.equal([1, ''])
      expect(external.stderr).to.match(/^OIDC_ISSUER is set: get a token from that issuer/)
      const folder = await emptyFolder()
      const elsewhere = await ledger(args, folder)
      expect([elsewhere.code, elsewhere.stdout]).to.deep.equal([1, ''])
      expect(elsewhere.stderr).to.match(/^No embedded issuer has run on \S+\. Start the service, or name its directory/)
      expect(await readdir(folder)).to.deep.equal([])
    })

    it('refuses an unknown scope', async () => {
      const { code, stdout, stderr } = await ledger([...args.slice(0, -1), 'orders:own'])
      expect({ code, stdout, stderr }).to.deep.equal({
        code: 1,
        stdout: '',
        stderr: 'There is no scope "orders:own".\n',
      })
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
