import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { currentAccount } from '../../../src/fairness/currentAccount.ts'
import { Turns } from '../../../src/fairness/turns.ts'
import { routes } from '../../../src/http/index.ts'
import type { AnyRoute } from '../../../src/http/route.ts'
import { REQUEST_LIMITS } from '../../../src/http/admission/requestTurn.ts'
import type { Database } from '../../../src/ports.ts'
import { breadth } from '../../support/breadth.ts'
import { type Client, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService } from '../../support/service.ts'
import { caller, startVariant, TENANT, type Variant } from '../../support/serviceVariants.ts'
import { examples, type Example } from '../requestExamples.ts'

/** Three times as many as may work at once: by the order of arrival all of them would begin before the honest request. */
const GREEDY_CALLERS = breadth(12, 100)
const AT_WORK = 4
/** Greedy requests that begin while an honest one waits: one by the order of arrival, and one in its turn of the loop. */
const BEFORE_MAX = 2
const GREEDY = `${TENANT}-greedy`
const LIST_ORDERS = routes.find(({ operationId }) => operationId === 'list_orders') as AnyRoute

/** Turns that all wait until the gate opens, and what began while each wait of the honest tenant lasted. */
const createGatedTurns = () => {
  let isOpen = true
  let greedyBegun = 0
  const overtakenBy: number[] = []
  const clock = { monotonicMs: () => performance.now(), sleep: (ms: number) => sleep(ms) }
  const turns = new Turns({ ...REQUEST_LIMITS, turns: () => (isOpen ? AT_WORK : 0) }, clock)
  const enter: Turns['enter'] = async (account, signal) => {
    const before = greedyBegun
    const end = await turns.enter(account, signal)
    if (account.tenant === TENANT) overtakenBy.push(greedyBegun - before)
    else greedyBegun += 1
    return end
  }
  return {
    waiting: () => turns.waiting,
    overtakenBy,
    turns: { tryEnter: () => undefined, enter, isAlone: () => false },
    close: () => (isOpen = false),
    open: () => {
      isOpen = true
      overtakenBy.length = 0
    },
  }
}

/** The statements that no account is charged for. */
const watchAccounts = (real: Database, unaccounted: string[]): Database => {
  const note = (text: string): void => {
    if (currentAccount() === undefined) unaccounted.push(text)
  }
  return {
    ...real,
    sql: (text, values) => {
      note(text)
      return real.sql(text, values)
    },
    transaction: (work, timeoutMs) => {
      note('transaction')
      return real.transaction(work, timeoutMs)
    },
    snapshot: (work, timeoutMs) => {
      note('snapshot')
      return real.snapshot(work, timeoutMs)
    },
  }
}

describe(`beside a tenant with ${GREEDY_CALLERS} callers, a request of another tenant`, () => {
  const gated = createGatedTurns()
  const unaccounted: string[] = []
  let variant: Variant
  const as = (tenant: string, name = 'only'): Client => clientOf(variant.api, `${tenant}/${name}`)

  before(async () => {
    variant = await startVariant(await sharedService(), {
      turns: gated.turns,
      database: real => watchAccounts(real, unaccounted),
      authenticate: async req => {
        const [tenant = '', client = ''] = (req.headers.authorization ?? '').replace('Bearer ', '').split('/')
        return { ...caller, tenant, client, subject: client }
      },
    })
  })
  after(() => variant.close())

  const send = (client: Client, route: AnyRoute, { path, body, headers }: Example) =>
    client.request(route.method, path, { ...(body && { body }), ...(headers && { headers }) })

  const exampleOf = async ({ operationId }: AnyRoute, client: Client): Promise<Example> => {
    const make = examples[operationId]
    if (make === undefined) throw new Error(`There is no example of ${operationId}.`)
    return make(client)
  }

  for (const route of routes)
    it(`to ${route.operationId} waits for ${BEFORE_MAX} of its requests at most`, async () => {
      const honest = as(TENANT)
      // Callers of public routes are strangers, whatever credential they send.
      const own = route.scope === 'none' ? LIST_ORDERS : route
      const [example, greedy] = [await exampleOf(own, honest), await exampleOf(route, as(GREEDY))]
      unaccounted.length = 0
      gated.close()
      const sent = Array.from({ length: GREEDY_CALLERS }, (_, n) => send(as(GREEDY, `caller-${n}`), route, greedy))
      await eventually(() => gated.waiting() === GREEDY_CALLERS)
      const answer = send(honest, own, example)
      await eventually(() => gated.waiting() === GREEDY_CALLERS + 1)
      gated.open()
      await answer
      const overtaken = [...gated.overtakenBy]
      await Promise.all(sent)
      expect(overtaken).to.have.length.greaterThan(0)
      expect(Math.max(...overtaken), `overtaken by ${overtaken.join(', ')}`).to.be.at.most(BEFORE_MAX)
      expect([...new Set(unaccounted)], 'statements without an account').to.deep.equal([])
    })
})
