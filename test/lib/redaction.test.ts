import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { withoutSecrets } from '../../src/lib/redaction.ts'
import { openLog } from '../../src/compose/serviceLog.ts'
import { formatKey } from '../../src/identity/apiKeyFormat.ts'
import { removeFolder } from '../support/folders.ts'

const ID = 'key_01JB3N8Q6Z4T1V7W9XAC2E5GHK'
const secret = (): string => randomBytes(24).toString('base64url')

describe('the lines of the log', () => {
  let dataDir: string
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'ledger-log-'))
  })
  afterEach(() => removeFolder(dataDir))

  const logged = async (fields: object): Promise<string> => {
    const { logger, flush } = await openLog({ dataDir, logLevel: 'info' })
    logger.error(fields, 'failed')
    await flush()
    return readFile(join(dataDir, 'ledger.log'), 'utf8')
  }

  it('have the message, the code and the causes of an error', async () => {
    const cause = new Error('connection refused')
    const error = Object.assign(new Error('no answer', { cause }), { code: 'ECONNREFUSED' })
    const line = JSON.parse(await logged({ error }))
    expect(line.error).to.include({ message: 'no answer: connection refused', code: 'ECONNREFUSED' })
    expect(line.error.stack).to.include('redaction.test.ts').and.to.include('caused by: Error: connection refused')
  })

  it('have no secret that an error quotes, and the words around it', async () => {
    const [password, token, keySecret, member] = [secret(), secret(), randomBytes(32), secret()]
    const key = formatKey('live', ID, keySecret)
    const jwt = ['{"alg":"ES256"}', '{"sub":"me"}'].map(part => Buffer.from(part).toString('base64url')).join('.')
    const text = await logged({
      error: new Error(`cannot connect to postgres://ledger:${password}@db:5432/ledger`),
      reason: `Authorization: Bearer ${token} was refused; X-API-Key: ${key}`,
      quoted: `${jwt}.${secret()} and {"client_secret":"${member}"}`,
    })
    for (const hidden of [password, token, key, jwt, member]) expect(text).to.not.include(hidden)
    expect(text)
      .to.include('postgres://ledger:…@db:5432/ledger')
      .and.to.include('Bearer … was refused')
      .and.to.include(`lk_live_${ID.slice(4)}_…`)
    expect(() => JSON.parse(text)).not.to.throw()
  })

  it('have no private key, in PEM or in base64', () => {
    for (const { privateKey } of [
      generateKeyPairSync('ed25519'),
      generateKeyPairSync('ec', { namedCurve: 'P-256' }),
      generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ]) {
      const base64 = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
      const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
      expect(withoutSecrets(`the key ${base64} is bad`)).to.equal('the key … is bad')
      expect(withoutSecrets(`the key ${pem}`)).to.equal('the key …\n')
      expect(withoutSecrets(JSON.stringify({ pem }))).to.equal(JSON.stringify({ pem: '…\n' }))
      expect(withoutSecrets(`cut ${pem.slice(0, 60)}`)).to.equal('cut …')
    }
  })

  it('are left as they are without a secret', () => {
    for (const line of [
      '{"level":30,"correlationId":"4a3c8f7e-0b","route":"create_order","status":201,"tookMs":3.1,"msg":"request"}',
      '{"api":"http://localhost:8080/orders?x=a@b","place":"esdb://127.0.0.1:2113?tls=false"}',
      '{"reason":"the token is expired","secret_rotated":true,"who":"key_01JB3N8Q6Z4T1V7W9XAC2E5GHK"}',
    ])
      expect(withoutSecrets(line)).to.equal(line)
  })
})
