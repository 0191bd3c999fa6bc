import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { StartupError } from '../../src/lib/startupError.ts'
import { readConfig } from '../../src/settings/config.ts'
import { fileSettingOf, SECRETS, secretIn } from '../../src/settings/secretFiles.ts'
import { removeFolder } from '../support/folders.ts'

const KAFKA = { KAFKA_BROKERS: 'kafka:9092', KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'u' }

describe('secrets in files', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-secrets-'))
  })
  after(() => removeFolder(folder))

  const fileWith = async (content: string): Promise<string> => {
    const path = join(folder, `secret-${crypto.randomUUID()}`)
    await writeFile(path, content)
    return path
  }

  it('are those of the environment, without the last line break', async () => {
    const values = {
      DATABASE_URL: 'postgres://u:hunter2@db/ledger',
      EVENTSTORE_URL: 'kurrentdb://u:hunter2@store:2113',
      KAFKA_SASL_PASSWORD: ' hunter2 ',
      API_KEY_PEPPER: 'p'.repeat(32),
      EVIDENCE_SIGNING_KEY: '-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----',
    }
    expect(Object.keys(values)).to.have.members(SECRETS)
    for (const end of ['', '\n', '\r\n']) {
      const env: Record<string, string> = { ...KAFKA }
      for (const [name, value] of Object.entries(values)) env[fileSettingOf(name)] = await fileWith(`${value}${end}`)
      const { databaseUrl, eventStoreUrl, kafka, apiKeys, evidence, unknownSettings } = readConfig(env)
      expect({
        DATABASE_URL: databaseUrl,
        EVENTSTORE_URL: eventStoreUrl,
        KAFKA_SASL_PASSWORD: kafka?.sasl?.password,
        API_KEY_PEPPER: apiKeys.pepper,
        EVIDENCE_SIGNING_KEY: evidence.signingKey,
      }).to.deep.equal(values)
      expect(unknownSettings).to.deep.equal([])
    }
  })

  it('take part in the checks of production', async () => {
    const DATABASE_URL_FILE = await fileWith('postgres://u:hunter2@db/ledger\n')
    const production = { NODE_ENV: 'production', EVENTSTORE_URL: 'esdb://store', KAFKA_SSL: 'true', OIDC_AUDIENCE: 'l' }
    const rest = { KAFKA_BROKERS: 'kafka:9092', OIDC_ISSUER: 'https://issuer.example' }
    const read = () => readConfig({ ...production, ...rest, DATABASE_URL_FILE })
    expect(read).to.throw(StartupError, 'DATABASE_URL does not require TLS')
  })

  it('have one sentence with setting and path for what cannot be used, and never the content', async () => {
    const [invalid, empty, line] = [await fileWith('hunter2\n'), await fileWith(''), await fileWith('\n')]
    await mkdir(join(folder, 'folder'))
    const refused: readonly (readonly [Record<string, string>, string])[] = [
      [{ DATABASE_URL_FILE: join(folder, 'none') }, `=${join(folder, 'none')} cannot be read: there is no such file.`],
      [{ DATABASE_URL_FILE: join(folder, 'folder') }, `=${join(folder, 'folder')} cannot be read: it is a directory.`],
      [{ DATABASE_URL_FILE: empty }, `=${empty} is an empty file.`],
      [{ DATABASE_URL_FILE: line }, `=${line} is an empty file.`],
    ]
    for (const [env, sentence] of refused)
      expect(() => readConfig(env)).to.throw(StartupError, `DATABASE_URL_FILE${sentence}`)
    expect(() => readConfig({ DATABASE_URL_FILE: invalid }))
      .to.throw(StartupError, `DATABASE_URL in DATABASE_URL_FILE=${invalid} is not valid: expected a URL such as`)
      .with.property('message')
      .that.does.not.include('hunter2')
  })

  it('are refused beside the setting itself, unless one of them is empty', async () => {
    const API_KEY_PEPPER_FILE = await fileWith('f'.repeat(32))
    const API_KEY_PEPPER = 'p'.repeat(32)
    expect(() => readConfig({ API_KEY_PEPPER, API_KEY_PEPPER_FILE })).to.throw(
      StartupError,
      /^API_KEY_PEPPER and API_KEY_PEPPER_FILE are both set: remove one of them\.$/,
    )
    expect(readConfig({ API_KEY_PEPPER: '', API_KEY_PEPPER_FILE }).apiKeys.pepper).to.equal('f'.repeat(32))
    expect(readConfig({ API_KEY_PEPPER, API_KEY_PEPPER_FILE: '' }).apiKeys.pepper).to.equal(API_KEY_PEPPER)
  })

  it('give the commands their token too', async () => {
    const LEDGER_TOKEN_FILE = await fileWith('token\n')
    expect(secretIn({ LEDGER_TOKEN_FILE }, 'LEDGER_TOKEN')).to.equal('token')
    expect(readConfig({ LEDGER_TOKEN_FILE }).unknownSettings).to.deep.equal([])
  })

  if (process.getuid?.() !== 0)
    it('are named when this user may not read them', async () => {
      const path = await fileWith('hunter2')
      await chmod(path, 0)
      expect(() => readConfig({ DATABASE_URL_FILE: path })).to.throw(
        `${path} cannot be read: this user may not read it.`,
      )
    })
})
