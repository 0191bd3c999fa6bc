import { expect } from 'chai'
import { durationsIn } from '../../../src/http/resources/installation.ts'
import { clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { removeFolder } from '../../support/folders.ts'
import { sharedService, startProcess, temporaryDirectory } from '../../support/service.ts'

/** GET /installation: what operators see of the processes. */

const OPERATORS = 'variants'

describe('http: the installation', () => {
  it('shows operators the leases, the versions in use and the durations of requests', async () => {
    const service = await sharedService()
    const operator = clientOf(
      service.api,
      await service.token({ tenant: OPERATORS, subject: 'op', scopes: ['audit:installation'] }),
    )
    const refused = await operator.get('/installation?nothing=1')
    expect(refused.body.code).to.equal('unknown_parameter')
    // A process takes its leases once it is ready.
    const body = await eventually(async () => {
      const answer = await operator.get('/installation')
      return answer.body.leases.some(({ name }: { name: string }) => name === 'worker') && answer.body
    })
    expect(body.leases.map(({ name }: { name: string }) => name)).to.include.members(['projector', 'worker'])
    const holder = body.leases.find(({ name }: { name: string }) => name === 'projector').holder
    const running = body.processes.find(({ name }: { name: string }) => name === holder)
    expect(running.roles).to.include('projector')
    expect(running.stopped_at).to.equal(null)
    expect(Date.parse(running.started_at)).to.be.within(Date.now() - 3_600_000, Date.now())
    expect(body.free_bytes).to.be.above(0)
    expect(body.certificates).to.deep.equal([])
    const { boundaries_seconds: boundaries, series } = body.request_durations
    expect(boundaries).to.include.members([0.002, 1, 10])
    const failed = series.find(({ error_code }: { error_code: string }) => error_code === 'unknown_parameter')
    expect(failed.status_class).to.equal('4xx')
    expect(failed.requests).to.be.at.least(1)
    expect(failed.within.at(-1)).to.equal(failed.requests)
    // The counts of versions are stored every few seconds.
    const use = await eventually(async () =>
      (await operator.get('/installation')).body.api_versions.find(({ client }: { client: string }) => client === 'op'),
    )
    expect(use.tenant_id).to.equal(OPERATORS)
    expect(use.requests).to.be.at.least(2)
  })

  it('keeps the starts and stops of processes; one that was killed has no stop', async () => {
    const dataDir = await temporaryDirectory()
    const outcomes: (string | null)[] = []
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM'] as const) {
      const service = await startProcess(dataDir)
      const token = await service.token({ tenant: OPERATORS, scopes: ['audit:installation'] })
      const { processes } = (await clientOf(service.api, token).get('/installation')).body
      outcomes.splice(0, Infinity, ...processes.map(({ stopped_at }: { stopped_at: string | null }) => stopped_at))
      await service.end(signal)
    }
    await removeFolder(dataDir)
    expect(outcomes.map(stopped => stopped === null)).to.deep.equal([true, true, false])
  })

  it('refuses callers without the scope, and callers of other tenants', async () => {
    const service = await sharedService()
    const codeFor = async (holder: object): Promise<string> =>
      (await clientOf(service.api, await service.token(holder)).get('/installation')).body.code
    expect(await codeFor({ tenant: OPERATORS, scopes: ['audit:read'] })).to.equal('insufficient_scope')
    expect(await codeFor({ tenant: 'acme' })).to.equal('policy_denied')
  })

  it('adds up the processes, routes and versions of the metrics', () => {
    const name = 'ledger_http_request_duration_seconds_bucket'
    const line = (labels: string, count: number): string => `${name}{${labels}} ${count}\n`
    const durations = durationsIn(
      line('process="api-1",route="GET /orders/{id}",status_class="2xx",le="0.1"', 3) +
        line('process="api-1",route="GET /orders/{id}",status_class="2xx",le="+Inf"', 4) +
        line('process="api-2",route="GET /events",status_class="2xx",le="0.1"', 1) +
        line('process="api-2",route="GET /events",status_class="2xx",le="+Inf"', 1) +
        line('route="none",status_class="4xx",error_code="route_not_found",le="0.1"', 0) +
        line('route="none",status_class="4xx",error_code="route_not_found",le="+Inf"', 2) +
        'ledger_http_request_duration_seconds_count{status_class="2xx"} 9\nother_bucket{le="1"} 7\n',
    )
    expect(durations).to.deep.equal({
      boundaries_seconds: [0.1],
      series: [
        { status_class: '2xx', error_code: null, requests: 5, within: [4] },
        { status_class: '4xx', error_code: 'route_not_found', requests: 2, within: [0] },
      ],
    })
  })
})
