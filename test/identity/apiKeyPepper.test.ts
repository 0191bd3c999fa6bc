import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openKeySecrets } from '../../src/compose/apiKeys.ts'
import { readConfig } from '../../src/settings/config.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { loadApiKeyPepper } from '../../src/embedded/apiKeyPepper.ts'
import { id } from '../streams/samples.ts'
import { rejectionOf } from '../support/rejection.ts'

const PEPPER = 'x'.repeat(32)
const PRODUCTION = {
  NODE_ENV: 'production',
  EVENTSTORE_URL: 'esdb://store:2113',
  DATABASE_URL: 'postgres://postgres/ledger?sslmode=verify-full',
  KAFKA_BROKERS: 'kafka:9092',
  KAFKA_SSL: 'true',
  OIDC_ISSUER: 'https://issuer.example',
  OIDC_AUDIENCE: 'payment-ledger',
}

describe('OIDC_ISSUER in production', () => {
  it('is refused over plain http, and accepted over https', () => {
    for (const issuer of ['http://issuer.example', 'HTTP://issuer.example/x', 'http://localhost:9000'])
      expect(() => readConfig({ ...PRODUCTION, OIDC_ISSUER: issuer })).to.throw(
        StartupError,
        /^OIDC_ISSUER is plain http/,
      )
    expect(readConfig(PRODUCTION).issuer).to.equal('https://issuer.example')
    const development = { OIDC_ISSUER: 'http://localhost:9000', OIDC_AUDIENCE: 'ledger' }
    expect(readConfig(development).issuer).to.equal('http://localhost:9000')
  })
})

describe('identity: the pepper of API keys', () => {
  let dataDir: string
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'pepper-'))
  })
  afterEach(() => rm(dataDir, { recursive: true }))

  const secretsOf = (env: Readonly<Record<string, string>>) =>
    openKeySecrets(readConfig({ LEDGER_DATA_DIR: dataDir, ...env }))

  it('is created at first use and kept, in a file that only its owner can read', async () => {
    const peppers = await Promise.all(Array.from({ length: 8 }, () => loadApiKeyPepper(dataDir)))
    expect(new Set(peppers).size).to.equal(1)
    expect(peppers[0]).to.match(/^[\w-]{43}$/)
    const path = join(dataDir, 'api-keys', 'pepper')
    expect((await stat(path)).mode & 0o777).to.equal(0o600)
    expect((await stat(join(dataDir, 'api-keys'))).mode & 0o777).to.equal(0o700)
    await chmod(path, 0o644)
    expect(await loadApiKeyPepper(dataDir)).to.equal(peppers[0])
    expect((await stat(path)).mode & 0o777).to.equal(0o600)
  })

  it('is refused when its file was truncated', async () => {
    await loadApiKeyPepper(dataDir)
    for (const content of ['', '\n', 'short\n']) {
      await writeFile(join(dataDir, 'api-keys', 'pepper'), content)
      expect((await rejectionOf(loadApiKeyPepper(dataDir))).message)
        .to.contain('api-keys/pepper')
        .and.to.not.contain('short\n')
    }
  })

  it('is that of the setting, if set, and then no file is created', async () => {
    const [one, other] = [
      await secretsOf({ API_KEY_PEPPER: PEPPER }),
      await secretsOf({ API_KEY_PEPPER: `${PEPPER}y` }),
    ]
    expect(await readdir(dataDir)).to.deep.equal([])
    expect(one?.keyOf(id('key'), 'n')).to.not.equal(other?.keyOf(id('key'), 'n'))
    expect(one?.environment).to.equal('dev')
  })

  it('that is too short prevents the start, with the name of the setting', () => {
    for (const pepper of ['x', 'x'.repeat(31)])
      expect(() => readConfig({ API_KEY_PEPPER: pepper })).to.throw(
        StartupError,
        /API_KEY_PEPPER.*at least 32 characters/,
      )
  })

  it('is never generated in production: without it there are no keys, with it they are live keys', async () => {
    expect(await secretsOf(PRODUCTION)).to.equal(undefined)
    expect(await secretsOf({ ...PRODUCTION, API_KEY_PEPPER: '' })).to.equal(undefined)
    const live = await secretsOf({ ...PRODUCTION, API_KEY_PEPPER: PEPPER })
    expect(live?.keyOf(id('key'), 'n')).to.match(/^lk_live_/)
    expect(await readdir(dataDir)).to.deep.equal([])
  })
})
