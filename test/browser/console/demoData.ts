import { identitiesOf, TENANT } from '../../../scripts/demo/identities.ts'
import { planOf } from '../../../scripts/demo/plan.ts'
import { runPlan } from '../../../scripts/demo/planExecution.ts'
import { readConfig } from '../../../src/settings/config.ts'
import { sources } from '../../../scripts/demo/sources.ts'
import { type Client, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { sharedService, type TestService } from '../../support/service.ts'

/** The shared service with the first invoices of the demo, whose tenant has the development user dana. */

const INVOICES = 40

export type DemoService = TestService & {
  /** A client of the demo's tenant with every scope. */
  readonly client: Client
  readonly invoiceIds: readonly string[]
}

let played: Promise<TestService & Pick<DemoService, 'invoiceIds'>> | undefined

const clientOfDemo = async (service: TestService): Promise<Client> =>
  clientOf(service.api, await service.token({ tenant: TENANT, subject: 'reader' }))

const play = async () => {
  const service = await sharedService()
  const config = readConfig({ LEDGER_DATA_DIR: service.dataDir })
  const signal = new AbortController().signal
  const plan = planOf(sources.slice(0, INVOICES))
  const { runs } = await runPlan(identitiesOf(config, service.addresses, signal), plan, () => undefined)
  const client = await clientOfDemo(service)
  const invoiceIds = runs.map(({ invoiceId }) => invoiceId)
  // The lists follow the log.
  await eventually(async () => (await client.get('/payments?state=pending')).body.items.length === 0)
  return { ...service, invoiceIds }
}

/** Plays the demo once for all files of a process; each has a token of its own, since they expire after minutes. */
export const demoService = async (): Promise<DemoService> => {
  const service = await (played ??= play())
  return { ...service, client: await clientOfDemo(service) }
}
