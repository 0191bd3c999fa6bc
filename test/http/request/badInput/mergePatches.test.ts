import { expect } from 'chai'
import { mergePatch } from '../../../../streams/mergePatch.ts'
import { type Answer, anOrder, type Client, clientOf } from '../../../support/client.ts'
import { type BadInputFixtures, refusesAll, acceptsAll } from './cases.ts'
import { type Refused, REFUSED } from './mergePatchTables.ts'
import { OF_METADATA, OF_ORDERS, RFC_EXAMPLES, type Accepted } from './mergePatchExamples.ts'

/** JSON merge patches (RFC 7396) of orders. */

const TENANT = 'bad-merge-patches'
const TYPE = 'application/merge-patch+json'

describe('the examples of RFC 7396, appendix A, and similar ones', () => {
  for (const [original, patch, result] of RFC_EXAMPLES)
    it(`${original} patched with ${patch} is ${result}`, () => {
      const target: unknown = JSON.parse(original)
      expect(JSON.stringify(mergePatch(target, JSON.parse(patch)))).to.equal(result)
      expect(JSON.stringify(target), 'the target is unchanged').to.equal(original)
    })
})

const paths: Partial<Record<Refused['of'] & string, string>> = {}
let open = ''

const patching = (
  client: Client,
  path: string,
  patch: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  client.request('PATCH', path, {
    raw: typeof patch === 'string' ? patch : JSON.stringify(patch),
    headers: { 'if-match': '*', 'content-type': TYPE, ...headers },
  })

const prepare = async ({ client, service }: BadInputFixtures): Promise<void> => {
  const other = clientOf(service.api, await service.token({ tenant: `${TENANT}-2` }))
  const created = async (by = client): Promise<string> =>
    (await by.post('/orders', { ...anOrder(), customer_reference: 'mine', metadata: { kept: 'yes' } })).body.id
  const always = { 'if-match': '*' }
  const [invoiced, cancelled, deleted] = [await created(), await created(), await created()]
  await client.post('/invoices', { order_id: invoiced })
  await client.post(`/orders/${cancelled}:cancel`, {}, always)
  await client.request('DELETE', `/orders/${deleted}`, { headers: always })
  open = `/orders/${await created()}`
  paths.invoiced = `/orders/${invoiced}`
  paths.cancelled = `/orders/${cancelled}`
  paths.deleted = `/orders/${deleted}`
  paths['another’s'] = `/orders/${await created(other)}`
}

refusesAll(
  { set: 'merge patches', tenant: TENANT, least: 130 },
  REFUSED.map(({ name, refusal, patch, headers, of, pointer }) => ({
    name,
    refusal,
    send: async ({ client }) => {
      const answer = await patching(client, (of && paths[of]) ?? open, patch, headers)
      expect(answer.headers.get('accept-patch')).to.equal(refusal[0] === 415 ? TYPE : null)
      if (pointer !== undefined) expect(answer.body.errors[0].pointer).to.equal(pointer)
      return answer
    },
  })),
  prepare,
)

/** Patches a new order. The members that the patch does not name are unchanged. */
const patchedOrder =
  ({ before = {}, patch, after = {}, version, type = TYPE }: Accepted) =>
  async ({ client }: BadInputFixtures): Promise<Answer> => {
    const order = await client.post('/orders', { ...anOrder(), ...before })
    const path = `/orders/${order.body.id}`
    const patched = await patching(client, path, patch, { 'content-type': type })
    expect(patched.status, patched.text).to.equal(200)
    const { updated_at: _, ...expected } = { ...order.body, ...after, version }
    expect(patched.body).to.deep.include(expected)
    expect((await client.get(path)).body).to.deep.equal(patched.body)
    return patched
  }

/** Accepted patches of an invoiced or cancelled order: they change nothing, or annotations of an invoiced one. */
const FINISHED: readonly { readonly name: string; readonly of: 'invoiced' | 'cancelled'; readonly patch: object }[] = [
  { name: 'an empty patch of an invoiced order', of: 'invoiced', patch: {} },
  { name: 'the same lines, of an invoiced order', of: 'invoiced', patch: { lines: anOrder().lines } },
  { name: 'a description, of an invoiced order', of: 'invoiced', patch: { description: 'late' } },
  { name: 'metadata, of an invoiced order', of: 'invoiced', patch: { metadata: { late: 'yes' } } },
  { name: 'an empty patch of a cancelled order', of: 'cancelled', patch: {} },
  { name: 'the present values of a cancelled order', of: 'cancelled', patch: { customer_reference: 'mine' } },
  { name: 'the removal of an absent member of a cancelled order', of: 'cancelled', patch: { description: null } },
  {
    name: 'metadata that a cancelled order has already',
    of: 'cancelled',
    patch: { metadata: { kept: 'yes', no: null } },
  },
]

acceptsAll(
  { set: 'merge patches', tenant: TENANT },
  [
    ...OF_ORDERS.map(accepted => ({ name: accepted.name, status: 200, send: patchedOrder(accepted) })),
    ...OF_METADATA.map(([before, patch, after]) => ({
      name: `metadata ${before} patched with ${patch} is ${after}`,
      status: 200,
      send: patchedOrder({
        name: '',
        before: { metadata: JSON.parse(before) },
        patch: { metadata: JSON.parse(patch) },
        after: { metadata: JSON.parse(after) },
        version: before === after ? 0 : 1,
      }),
    })),
    ...FINISHED.map(({ name, of, patch }) => ({
      name,
      status: 200,
      send: ({ client }: BadInputFixtures) => patching(client, paths[of] ?? '', patch),
    })),
  ],
  prepare,
)
