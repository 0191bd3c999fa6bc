import { userInfo } from 'node:os'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { start } from '../cli.ts'
import { closedPort, emptyFolder, folderWith, ledger, serving, tidyUp } from './fixtures.ts'

const TENANT = 'operators-of-keys'
const OF_TENANT = ['--tenant', TENANT]
const ISSUE = ['keys', 'issue', ...OF_TENANT, '--name', 'nightly', '--scope', 'orders:read invoices:read']

describe('npm run ledger -- keys', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })
  after(tidyUp)

  const statusWith = async (key: string): Promise<number> =>
    (await clientOf(service.api).get('/orders', { 'x-api-key': key.trim() })).status
  const issued = async () => JSON.parse((await ledger([...ISSUE, '--json'])).stdout)
  const listed = async (...args: readonly string[]) => {
    const { stdout } = await ledger(['keys', 'list', ...OF_TENANT, '--json', ...args])
    return JSON.parse(stdout).items as readonly { id: string; state: string; created_by: string }[]
  }
  const eventuallyListed = (id: string) => eventually(async () => (await listed()).find(one => one.id === id))

  it('issues a key that the API accepts, alone on stdout; its other members go to stderr', async () => {
    const { code, stdout, stderr } = await ledger([...ISSUE, '--days', '7', '--quota', '100/60'])
    expect(code).to.equal(0)
    expect(stdout).to.match(/^lk_dev_\S+\n$/)
    expect(stderr).to.match(/^key_\S{26} is good until \S+\. It is not shown again\.\n$/)
    expect(await statusWith(stdout)).to.equal(200)
  })

  it('issues, lists and rotates as JSON, and the list has no secret', async () => {
    const key = await issued()
    expect(key).to.include({ name: 'nightly', state: 'active', created_by: userInfo().username })
    expect(await eventuallyListed(key.id)).to.not.have.property('secret')
    const args = ['keys', 'rotate', key.id, ...OF_TENANT, '--overlap', '0', '--json']
    const rotated = JSON.parse((await ledger(args)).stdout)
    expect(rotated).to.include({ id: key.id, version: 1, previous_secret_until: null })
    expect(await statusWith(rotated.secret)).to.equal(200)
  })

  it('rotates with the new key alone on stdout, and the end of the previous one on stderr', async () => {
    const { id } = await issued()
    const { stdout, stderr } = await ledger(['keys', 'rotate', id, ...OF_TENANT])
    expect(stdout).to.match(/^lk_dev_\S+\n$/)
    expect(stderr).to.contain('The one before it ends 2')
    expect(await statusWith(stdout)).to.equal(200)
  })

  it('lists keys in columns, and by state', async () => {
    const { id } = await issued()
    await eventuallyListed(id)
    const { stdout } = await ledger(['keys', 'list', ...OF_TENANT, '--state', 'active'])
    expect(stdout).to.match(/^id +state +expires_at +scopes +name\n/)
    expect(stdout).to.match(new RegExp(`^${id} +active +\\S+ +orders:read invoices:read +nightly$`, 'm'))
    expect(await listed('--state', 'expired')).to.deep.equal([])
  })

  it('reports an invalid token in one sentence', async () => {
    const { code, stderr } = await ledger(['keys', 'list'], service.dataDir, { LEDGER_TOKEN: 'x.y.z' })
    expect(code).to.equal(2)
    expect(stderr).to.match(/^The access token is not valid for this service\..* \(token_invalid, /)
  })

  it('revokes a key once; a second revocation reports that it is gone', async () => {
    const { id } = await issued()
    const { code, stdout } = await ledger(['keys', 'revoke', id, ...OF_TENANT])
    expect([code, stdout]).to.deep.equal([0, `${id} is revoked: within seconds no instance takes it any more.\n`])
    const again = await ledger(['keys', 'revoke', id, ...OF_TENANT, '--json'])
    expect([again.code, again.stdout]).to.deep.equal([2, ''])
    expect(again.stderr).to.match(/^The resource does not exist\. .* \(resource_not_found, correlation id \S+\)\n$/)
  })

  it('accepts a token in the environment or on stdin', async () => {
    const token = await service.token({ tenant: TENANT, subject: 'ann', scopes: ['keys:manage', 'orders:read'] })
    const args = ['keys', 'issue', '--name', 'ann’s', '--scope', 'orders:read', '--json']
    const inEnvironment = await ledger(args, service.dataDir, { LEDGER_TOKEN: token })
    expect(JSON.parse(inEnvironment.stdout)).to.include({ created_by: 'ann' })
    const env = { LEDGER_DATA_DIR: service.dataDir }
    const piped = await start('ledger.ts', [...args, '--token-stdin'], env, `${token}\n`).ended
    expect(JSON.parse(piped.stdout)).to.include({ created_by: 'ann' })
  })

  it('refuses a token on the command line, which every user of the machine can read', async () => {
    const refused = await ledger(['keys', 'list', '--token', 'x.y.z'])
    expect([refused.code, refused.stdout]).to.deep.equal([2, ''])
    expect(refused.stderr).to.match(/put the token into LEDGER_TOKEN, or pipe it in with --token-stdin/)
    expect(refused.stderr).to.not.include('x.y.z')
    expect((await ledger(['keys', 'list', '--help'])).stdout).to.not.include('--token <')
  })

  const refusals: Readonly<Record<string, readonly [args: readonly string[], sentence: RegExp]>> = {
    'no caller is named': [
      ['keys', 'list'],
      /^Name the tenant with --tenant, or put a token of your own into LEDGER_TOKEN/,
    ],
    'the service refuses': [[...ISSUE, '--days', '91'], /\/expires_in_days: .*\(validation_failed, /],
    'a scope is unknown': [
      ['keys', 'issue', ...OF_TENANT, '--name', 'x', '--scope', 'orders:own'],
      /^There is no scope "orders:own"\. The scopes are .*\n$/,
    ],
    'a number is invalid': [[...ISSUE, '--days', 'many'], /^--days must be a whole number\.\n$/],
    'a quota is invalid': [[...ISSUE, '--quota', '100'], /^--quota is written requests\/seconds: 10000\/86400\.\n$/],
  }
  for (const [reason, [args, sentence]] of Object.entries(refusals))
    it(`reports in one sentence that ${reason}`, async () => {
      const { code, stdout, stderr } = await ledger(args)
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(stderr).to.match(sentence)
    })

  it('reports that no service runs, that it does not respond, and that the issuer is external', async () => {
    const list = ['keys', 'list', ...OF_TENANT]
    const none = await ledger(list, await emptyFolder())
    expect(none.stderr).to.match(/^No service is running on \S+\. Run npm start/)
    const api = `http://localhost:${await closedPort()}`
    expect((await ledger(list, await folderWith({ api }))).stderr).to.contain(`The API at ${api} does not answer.`)
    const env = { OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: 'payment-ledger' }
    const foreign = await ledger(list, await emptyFolder(), env)
    expect(foreign.stderr).to.equal('OIDC_ISSUER is set: get a token from that issuer, and put it into LEDGER_TOKEN.\n')
    for (const { code } of [none, foreign]) expect(code).to.equal(2)
  })

  it('names its idempotency key when the answer is lost, and a repetition with it issues no second key', async () => {
    const answers: string[] = []
    const api = await serving((req, res) => {
      void (async () => {
        const { authorization = '', 'idempotency-key': key = '' } = req.headers
        const headers = { authorization, 'idempotency-key': String(key), 'content-type': 'application/json' }
        const sent = await fetch(`${service.api}${req.url}`, { method: 'POST', headers, body: await text(req) })
        answers.push(await sent.text())
        res.destroy()
      })()
    })
    const lost = await ledger(ISSUE, await folderWith({ api }))
    expect([lost.code, lost.stdout]).to.deep.equal([2, ''])
    const key = /--idempotency-key (\S+), and it does so once\.\n$/.exec(lost.stderr)?.[1] ?? ''
    const repeated = await ledger([...ISSUE, '--idempotency-key', key, '--json'])
    expect(JSON.parse(repeated.stdout).id).to.equal(JSON.parse(answers[0] ?? '').id)
    const { id } = JSON.parse(repeated.stdout)
    const rotate = ['keys', 'rotate', id, ...OF_TENANT]
    expect((await ledger(rotate, await folderWith({ api }))).stderr).to.match(
      /--idempotency-key \S+, and it does so once/,
    )
  })

  it('has a help text for each of them, which mentions --json', async () => {
    for (const command of ['list', 'issue', 'rotate', 'revoke']) {
      const { code, stdout } = await ledger(['keys', command, '--help'])
      expect(code).to.equal(0)
      expect(stdout).to.include(`Usage: ledger keys ${command}`).and.to.include('--json')
    }
  })
})
