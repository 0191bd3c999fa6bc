import type { Mutant } from './mutant.ts'

/** Planted bugs that let one tenant slow down the others. */

export const FAIRNESS_MUTANTS: readonly Mutant[] = [
  {
    name: 'a page with filters searches the whole list',
    file: 'projections/listQueries.ts',
    find: '${rows} order by ${order} limit ${EXAMINED_MAX}',
    replace: '${rows} order by ${order}',
  },
  {
    name: 'the texts of all tenants wait in the queue of the tenant that came first',
    file: 'src/personalTexts/personalTexts.ts',
    find: `workForAll(begin)`,
    replace: `begin()`,
  },
  {
    name: 'a tenant whose requests hold every turn is served before another one',
    file: 'src/fairness/fairQueue.ts',
    find: `one.used < other.used`,
    replace: `false`,
  },
  {
    name: 'a request that hangs holds its turn until it ends',
    file: 'src/fairness/turns.ts',
    find: `      this.#endLongTurns()
      const sinceMs`,
    replace: `      const sinceMs`,
  },
  {
    name: 'one tenant may hold every worker of exports',
    file: 'src/processes/fairScheduling.ts',
    find: `countOf(job) < underWayMax`,
    replace: `true`,
  },
  {
    name: 'each caller of a tenant has a tenant limit of its own',
    file: 'src/http/admission/rateLimits.ts',
    find: `count(counter, tenant, tenantPolicy(policy))`,
    replace: `count(counter, caller, tenantPolicy(policy))`,
  },
  {
    name: 'a tenant over its quota of bytes may store more',
    file: 'src/commands/quotas/byteQuota.ts',
    find: `if (!hasEffect()) await`,
    replace: `if (hasEffect()) await`,
  },
  {
    name: 'a subscription goes on for ever after its creator was last seen',
    file: 'src/processes/subscriptions/creatorConfirmation.ts',
    find: `if (dependencies.ledger.world.now() < confirmByMs(seen_on, dependencies.confirmationMs)) return true`,
    replace: `if (confirmByMs(seen_on, dependencies.confirmationMs) > 0) return true`,
  },
  {
    name: 'a proof shows the stored part of an API key',
    file: 'src/evidence/withholding.ts',
    find: `if (holdsCredentials(stream)) return`,
    replace: `if (holdsLogSecret(stream)) return`,
  },
  {
    name: 'a reader of exports downloads the data of a resource that it may not read',
    file: 'src/http/resources/exportContent.ts',
    find: `  call.requireScopes([SCOPE_OF[row.resource]])
`,
    replace: ``,
  },
  {
    name: 'every event stream serializes and seals each fact for itself',
    file: 'src/http/resources/events/eventSender.ts',
    find: `    fact.frames?.set(key, frame)
`,
    replace: '',
  },
  {
    name: 'a client may let a stream grow without end',
    file: 'src/commands/streamGrowth.ts',
    find: `eventCountOf(before) < max ?`,
    replace: `eventCountOf(before) >= 0 ?`,
  },
]
