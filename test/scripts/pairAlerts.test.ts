import { expect } from 'chai'
import { startNameServer } from '../compose/nameServer.ts'
import { startPrometheus } from '../compose/prometheus.ts'
import { eventually } from '../support/eventually.ts'
import { findWorkingProgram } from '../support/programs.ts'
import { sharedService } from '../support/service.ts'

/** The second instances of the compose set-up, which exist under the profile `pair` alone and are found by DNS. */

const quickly = (text: string): string =>
  text
    .replaceAll('interval: 10s', 'interval: 1s')
    .replace('port: 9464', 'port: 9464\n        refresh_interval: 1s')
    .replaceAll('for: 1m', 'for: 1s')

const withNameServer = (): void => {
  const names = new Set<string>()
  let server: Awaited<ReturnType<typeof startNameServer>>
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>
  const firing = (instance: string): Promise<string | undefined> =>
    prometheus.valueOf(`ALERTS{alertname="LedgerUnreachable",alertstate="firing",instance="${instance}"}`)

  before(async () => {
    const { host, port } = new URL((await sharedService()).addresses.metrics ?? '')
    server = await startNameServer(names)
    prometheus = await startPrometheus({
      configuration: usual =>
        quickly(usual).replace("['api:9464', 'feeds:9464']", `['${host}']`).replace('port: 9464', `port: ${port}`),
      alerts: quickly,
      resolver: server.resolver,
    })
  })
  after(async () => {
    await prometheus.close()
    server.close()
  })

  it('are no targets without the profile, and no alert fires', async () => {
    await eventually(async () => server.queries() >= 4)
    await eventually(async () => (await prometheus.valueOf('count(up{job="ledger"} == 1)')) === '1')
    expect(await prometheus.valueOf('ALERTS{alertname="LedgerUnreachable"}')).to.equal(undefined)
  })

  it('page when they die, and not when they come back', async () => {
    names.add('api-2').add('feeds-2')
    for (const instance of ['api-2:9464', 'feeds-2:9464'])
      await eventually(async () => (await prometheus.valueOf(`up{instance="${instance}"}`)) === '1')
    names.delete('api-2')
    await eventually(async () => (await firing('api-2:9464')) === '1')
    expect(await firing('feeds-2:9464')).to.equal(undefined)
    names.add('api-2')
    await eventually(async () => (await firing('api-2:9464')) === undefined)
  })
}

const PROGRAMS = [
  ['prometheus', '--version'],
  ['unshare', '--mount', 'true'],
] as const

describe('the targets of the profile pair', () => {
  const missing = PROGRAMS.filter(([name, ...args]) => findWorkingProgram(name, args) === undefined)
  if (missing.length === 0) describe('found by Prometheus', withNameServer)
  else
    it(`are not looked for, because these do not work here: ${missing.map(([name]) => name).join(', ')}`, () => {
      expect(missing).not.to.deep.equal([])
    })
})
