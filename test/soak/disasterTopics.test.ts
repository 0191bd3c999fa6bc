import { join } from 'node:path'
import { mkdir } from 'node:fs/promises'
import { expect } from 'chai'
import type { Kafka } from '../../scripts/kafka/broker.ts'
import { run } from '../scripts/cli.ts'
import { type Client, newKey } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { describeWithOwnBroker, readTopic } from '../support/kafka.ts'
import { startBroker } from '../support/preparedBroker.ts'
import { temporaryDirectory } from '../support/service.ts'
import { expectPaidOnce, openStage, report, sendAgain, type Stage, stopwatch } from '../support/disasterStage.ts'

/** The drill of DISASTER.md for topics with facts that the log has lost, on a real broker, with the copies of an analyst. */

const PAYMENTS_TOPIC = 'ledger.payment.v1'

describeWithOwnBroker('the drill for topics ahead of the log', () => {
  let folder: string
  let kafka: Kafka
  let stage: Stage
  const copy = (name: string): string => join(folder, name)
  const ledger = (args: readonly string[], env = stage.env()) => run('ledger.ts', args, env)
  const succeededIn = async () =>
    (await readTopic(kafka.brokers, PAYMENTS_TOPIC).catch(() => [])).filter(
      ({ headers }) => headers['ce_type'] === 'payment.succeeded',
    )
  /** The ids of the facts of payments in the topic. */
  const idsIn = async (): Promise<Set<string | undefined>> =>
    new Set((await succeededIn()).map(({ headers }) => headers['ce_id']))

  before(async () => {
    folder = await temporaryDirectory()
    await mkdir(copy('kafka'))
    kafka = await startBroker({ dataDir: copy('kafka') })
    const subscribe = async (client: Client): Promise<void> => {
      const body = { types: ['payment.succeeded'], start: 'beginning' }
      expect((await client.post('/subscriptions', body, { 'idempotency-key': newKey() })).status).to.equal(201)
    }
    const copyAll = async (client: Client, env: Readonly<Record<string, string>>): Promise<void> => {
      const paid = (await client.get('/payments')).body.items.length
      await eventually(async () => (await idsIn()).size >= paid)
      await run('ledger.ts', ['manifest'], env)
      for (const [name, ...how] of [
        ['http', '--tenant', 'acme'],
        ['kafka', '--from', 'kafka'],
      ] as const) {
        const { code, stderr } = await run('ledger.ts', ['consume', '--copy', copy(name), ...how], env)
        expect(code, stderr).to.equal(0)
      }
    }
    stage = await openStage({ settings: { KAFKA_BROKERS: kafka.brokers.join(',') }, before: subscribe, after: copyAll })
  })
  after(async () => {
    await stage?.close()
    await kafka?.stop()
    await removeFolder(folder)
  })

  it('4: is noticed by the copies of an analyst, and ends with topics that have the facts of the log alone', async () => {
    await stage.restore('topics', { log: 'backup', tables: 'now' })
    await stage.succeed('reset')
    let client = await stage.start()
    // Before the facts of the drill cover those that were lost.
    const doctor = await eventually(async () => {
      const { stdout } = await ledger(['doctor'])
      return /^(ok|FINDING) +published facts /m.test(stdout) && stdout
    })
    expect(doctor).to.match(/^FINDING +published facts +Kafka is ahead of the log: .* are not in the log, such as /m)
    expect(doctor).to.match(/^published facts: .* Follow drill 4 of scripts\/ledger\/DISASTER\.md\.$/m)
    const ahead = /^The copy goes up to position \d+, and the ledger has facts up to \d+: it was restored/m
    expect((await ledger(['consume', '--copy', copy('http'), '--tenant', 'acme'])).stderr).to.match(ahead)
    const proof = await ledger(['consume', 'verify', '--copy', copy('http'), '--tenant', 'acme'])
    expect(proof.code).to.equal(1)
    expect(proof.stdout).to.match(
      /: The copy goes up to position \d+, and the ledger has facts up to \d+: it was restored/,
    )
    const paid = await sendAgain(client, stage)
    const conflicting = await eventually(async () => {
      const bySubject = Map.groupBy(await succeededIn(), ({ key }) => key)
      const twice = [...bySubject.values()].filter(of => new Set(of.map(({ headers }) => headers['ce_id'])).size === 2)
      return twice.length === stage.lost.filter(({ hasInvoice }) => hasInvoice).length && twice
    })
    for (const of of conflicting)
      expect(new Set(of.map(({ headers }) => headers['ce_sequence']))).to.have.property('size', 1)
    await ledger(['manifest'])
    const polluted = await ledger(['consume', '--copy', copy('polluted'), '--from', 'kafka'])
    const verdict = await ledger(['consume', 'verify', '--copy', copy('polluted')])
    expect(`${polluted.stderr}${verdict.stdout}`).to.match(/lost in a restore|overlap: the ledger was restored/)
    expect(verdict.code).to.equal(1)

    await stage.stopService()
    const elapsed = stopwatch()
    expect(await stage.succeed('topics')).to.match(/^deleted: [1-9]/m)
    await stage.succeed('reset')
    client = await stage.start()
    await eventually(async () => (await idsIn()).size === paid.length)
    report('4, the topics', `RPO 0 facts of the log, RTO ${elapsed()}`)
    expect(await stage.succeed('copy', { COPY: copy('anew') })).to.match(/^The copy is complete\.$/m)
    await expectPaidOnce(client, paid)
    const [subscription] = (await client.get('/subscriptions')).body.items
    await eventually(async () => {
      const messages = await readTopic(kafka.brokers, subscription.topic).catch(() => [])
      return new Set(messages.map(({ headers }) => headers['ce_id'])).size === paid.length
    })
    await stage.succeed('accept')
    await stage.check()
  })
})
