import { expect } from 'chai'
import { plannedProcesses } from '../../src/cluster/children.ts'
import { readConfig } from '../../src/settings/config.ts'
import { defaultProcesses } from '../../src/settings/values.ts'

describe('the number of processes', () => {
  it('follows the cores: embedded stores use the second one, and two fifths of the others', () => {
    const onCores = (cores: number) => defaultProcesses(cores, { stores: 'embedded', hasFeeds: true })
    expect([1, 2, 3, 4, 8, 16, 200].map(onCores)).to.deep.equal([1, 1, 2, 3, 4, 7, 11])
  })

  it('leaves connections to Postgres for others on a large machine', () => {
    expect(defaultProcesses(64, { stores: 'apart', hasFeeds: true })).to.equal(11)
  })

  it('follows the cores that the service has for itself when the stores are elsewhere', () => {
    const onCores = (hasFeeds: boolean) => (cores: number) => defaultProcesses(cores, { stores: 'apart', hasFeeds })
    expect([1, 2, 4, 8].map(onCores(true))).to.deep.equal([1, 2, 4, 7])
    expect([1, 2, 4, 8].map(onCores(false))).to.deep.equal([1, 1, 3, 6])
  })

  it('is set by LEDGER_PROCESSES, and is one without the role api', () => {
    const processes = (env: Record<string, string>): number => readConfig(env).processes
    expect(processes({ LEDGER_PROCESSES: '5' })).to.equal(5)
    expect(processes({ LEDGER_PROCESSES: '5', LEDGER_ROLES: 'api' })).to.equal(5)
    expect(processes({ LEDGER_PROCESSES: '5', LEDGER_ROLES: 'projector,worker' })).to.equal(1)
    for (const wrong of ['0', '33', 'two', '1.5'])
      expect(() => processes({ LEDGER_PROCESSES: wrong })).to.throw('LEDGER_PROCESSES')
  })

  it('gives one process all feeds, and each other one the API', () => {
    const planned = (processes: number, roles: readonly ('api' | 'projector' | 'worker')[]) =>
      plannedProcesses({ processes, roles }).map(plan => `${plan.name}: ${plan.roles.join()}`)
    expect(planned(3, ['worker', 'api', 'projector'])).to.deep.equal([
      'api-1: api',
      'api-2: api',
      'feeds: worker,projector',
    ])
    expect(planned(2, ['api'])).to.deep.equal(['api-1: api', 'api-2: api'])
  })
})
