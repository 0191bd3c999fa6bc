import { Agent } from 'node:http'
import { expect } from 'chai'
import { newKey } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { quietHead, writtenSince } from '../../support/service.ts'
import { type Answered, type OverloadedService, startOverloadedService, TENANT } from './overloadFixtures.ts'

/** A service whose event loop is blocked: what cannot begin in time is refused and has no effect. */

const BLOCKED_MAX_MS = 30_000
const ROUNDS = 3
const NOTICED_AFTER = 4
/** More than can begin while the loop is late, and fewer than one caller may have waiting. */
const WHILE_BLOCKED = 150

/** Runs inside the service: blocks the loop at a signal, until another one. */
const INJECTED = `
  let endsAt = 0
  process.on('SIGURG', () => {
    endsAt = 0
  })
  process.on('SIGWINCH', () => {
    endsAt = performance.now() + ${BLOCKED_MAX_MS}
    const block = () => {
      const until = performance.now() + 120
      while (performance.now() < until);
      if (performance.now() > endsAt) console.log('free')
      else setImmediate(block)
    }
    console.log('blocked')
    block()
  })
`

const expectOverloaded = ({ body, headers }: Answered): void => {
  expect(body).to.include({ status: 503, code: 'overloaded' })
  expect(body['retry']).to.deep.equal({ retryable: true, strategy: 'same_request', after_seconds: 1 })
  expect(headers['retry-after']).to.equal('1')
}

describe('a service whose event loop is blocked for 120 ms in every turn', () => {
  let overloaded: OverloadedService
  before(async () => {
    overloaded = await startOverloadedService(INJECTED)
  })
  after(async () => {
    process.kill(overloaded.service.pid, 'SIGURG')
    await overloaded.close()
  })

  it('refuses what it cannot begin in time, and recovers', async () => {
    const { service, client, store } = overloaded
    const token = await service.token({ tenant: TENANT })
    // A late loop accepts connections slowly: these are open before.
    const agent = new Agent({ keepAlive: true })
    const create = (key: string) => overloaded.createOrder(agent, token, key)
    await Promise.all(Array.from({ length: WHILE_BLOCKED }, newKey).map(create))
    const hasPrinted = (word: string): boolean => service.output().split('\n').includes(word)
    const position = await quietHead(store)
    process.kill(service.pid, 'SIGWINCH')
    await eventually(async () => hasPrinted('blocked'))

    // The delay is measured in windows of 250 ms, while there are requests.
    for (let request = 0; request < NOTICED_AFTER; request++) await client.get('/orders')

    const keys = Array.from({ length: WHILE_BLOCKED }, newKey)
    const answering = Promise.all(keys.map(create))
    for (let round = 0; round < ROUNDS; round++) {
      const [live, ready] = await Promise.all([client.get('/livez'), client.get('/readyz')])
      expect([live.status, ready.status], 'the health endpoints').to.deep.equal([200, 200])
    }
    const answers = await answering
    const refused = keys.filter((_, index) => answers[index]?.status !== 201)
    for (const answer of answers) if (answer.status !== 201) expectOverloaded(answer)
    expect(refused.length, 'refused requests').to.be.greaterThan(1)
    process.kill(service.pid, 'SIGURG')
    await eventually(async () => hasPrinted('free'))

    const [key = '', ...others] = refused.slice(0, 20)
    const again = await eventually(async () => {
      const answer = await create(key)
      return answer.status !== 503 && answer
    })
    expect(again.status).to.equal(201)
    expect(again.headers, 'the refused request was executed').not.to.have.property('idempotent-replayed')
    const outcomes = await Promise.all(
      others.map(each => client.get(`/idempotency-keys/${each}?operation=create_order`)),
    )
    expect(new Set(outcomes.map(({ body }) => body.status))).to.deep.equal(new Set(['never_seen']))
    const accepted = keys.length - refused.length
    expect((await writtenSince(store, position, TENANT)).length).to.equal(accepted + 1)
  })
})
