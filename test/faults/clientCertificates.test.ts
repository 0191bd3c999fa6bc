import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { diagnosisOf, ledger } from '../scripts/ledger/fixtures.ts'
import { anOrder, clientOf } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { kafkaForTests, kafkaKind, type KafkaForTests, readTopic } from '../support/kafka.ts'
import { newAuthority } from '../support/selfSigned.ts'
import { startProcess, temporaryDirectory } from '../support/service.ts'
import { outputUntil } from '../support/starts.ts'

/** A broker that asks its clients for a certificate, in place of a password. */

const REFUSED =
  'it refuses a client without a certificate that it trusts. Set KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE to a ' +
  'certificate of an authority that the server trusts, and its key.'

type Env = Record<string, string>

const withBroker = (): void => {
  let folder: string
  let kafka: KafkaForTests
  let trusting: Env

  before(async () => {
    folder = await temporaryDirectory()
    kafka = (await kafkaForTests()) ?? expect.fail('There is no broker.')
    const brokers = kafka.sasl?.mutualBrokers.join(',') ?? ''
    const ca = join(folder, 'ca.pem')
    await writeFile(ca, kafka.authority ?? '')
    trusting = { KAFKA_BROKERS: brokers, KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: ca }
  })
  after(() => removeFolder(folder))

  /** The settings of a client with a new certificate of this authority. */
  const shown = async (name: string, authority = kafka.clients ?? newAuthority('none')): Promise<Env> => {
    const { cert, key } = authority.issue(['ledger'])
    const files = { KAFKA_SSL_CERT_FILE: join(folder, `${name}.crt`), KAFKA_SSL_KEY_FILE: join(folder, `${name}.key`) }
    await writeFile(files.KAFKA_SSL_CERT_FILE, cert)
    await writeFile(files.KAFKA_SSL_KEY_FILE, key)
    return { ...trusting, ...files }
  }

  const foundBy = async (env: Env) => {
    const { checks } = diagnosisOf(await ledger(['doctor', '--json'], join(folder, 'none'), env))
    return checks.find(({ check }) => check === 'Kafka')
  }

  it('is accepted by doctor with a certificate of the right authority', async () => {
    expect(await foundBy(await shown('right'))).to.include({ status: 'ok' })
  })

  it('is named by doctor where the certificate is missing, or of another authority', async () => {
    for (const env of [trusting, await shown('other', newAuthority('Another authority'))]) {
      const { status, detail, way_out } = (await foundBy(env)) ?? {}
      expect([status, `${detail} ${way_out}`]).to.satisfy(
        ([state, words = '']: string[]) => state !== 'ok' && words.includes(REFUSED),
        `${status} ${detail} ${way_out}`,
      )
    }
  })

  it('is named by a start where the certificate is missing', async () => {
    await outputUntil(REFUSED, trusting)
  })

  it('gets the facts of a service with a certificate', async () => {
    const dataDir = await temporaryDirectory()
    const service = await startProcess(dataDir, await shown('service'))
    try {
      const { status, body } = await clientOf(service.api, await service.token()).post('/orders', anOrder())
      expect(status).to.equal(201)
      await eventually(async () =>
        (await readTopic(kafka.brokers, 'ledger.order.v1')).some(({ value }) => value.includes(String(body['id']))),
      )
    } finally {
      await service.end('SIGTERM')
      await removeFolder(dataDir)
    }
  })
}

describe('a broker that asks for certificates', () => {
  if (kafkaKind === 'real') withBroker()
  else
    it('is not run, because it needs a broker of the tests', () => {
      expect(kafkaKind).not.to.equal('real')
    })
})
