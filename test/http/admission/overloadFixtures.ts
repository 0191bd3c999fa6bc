import { type Agent, type IncomingHttpHeaders, request } from 'node:http'
import { openEventStore } from '../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../src/ports.ts'
import { anOrder, type Client, clientOf, newKey } from '../../support/client.ts'
import { removeFolder } from '../../support/folders.ts'
import { type ServiceProcess, startProcess, temporaryDirectory } from '../../support/service.ts'

/** A service that is to be overloaded. */

export const TENANT = 'overload'
const UNLIMITED = ['default', 'payments', 'auth_failures'].map(policy => `${policy}=100000000/60`).join(',')

export type Answered = {
  readonly status: number
  readonly body: { readonly id: string; readonly [member: string]: unknown }
  readonly headers: IncomingHttpHeaders
}

export type OverloadedService = {
  readonly service: ServiceProcess
  readonly client: Client
  readonly store: EventStore
  /** Creates an order with this token and key, without the retries of the tests' client. */
  readonly createOrder: (agent: Agent, token: string, key?: string) => Promise<Answered>
  readonly close: () => Promise<void>
}

/** `injected`: the text of a module that runs inside the service. */
export const startOverloadedService = async (injected: string): Promise<OverloadedService> => {
  const dataDir = await temporaryDirectory()
  const options = `--import data:text/javascript,${encodeURIComponent(injected)}`
  const service = await startProcess(dataDir, { NODE_OPTIONS: options, RATE_LIMITS: UNLIMITED })
  const store = openEventStore({ connectionString: service.addresses.event_store })
  return {
    service,
    client: clientOf(service.api, await service.token({ tenant: TENANT })),
    store,
    createOrder: (agent, token, key) => createOrder(service.api, agent, token, key),
    close: async () => {
      await store.close()
      await service.end('SIGTERM')
      await removeFolder(dataDir)
    },
  }
}

const createOrder = (api: string, agent: Agent, token: string, key = newKey()): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify(anOrder())
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'idempotency-key': key,
    }
    const outgoing = request(`${api}/orders`, { method: 'POST', agent, headers }, answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', chunk => (text += chunk))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          body: JSON.parse(text) as Answered['body'],
          headers: answer.headers,
        }),
      )
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
