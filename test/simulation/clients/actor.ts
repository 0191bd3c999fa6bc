import type { Answer, Caller } from '../http.ts'
import type { Client, Request } from './client.ts'
import type { Known, KnownResources } from './knownResources.ts'

/** An action is one logical request of a client, with its retries and, now and then, its twins and its mistakes. */
export type Actor = { readonly client: Client; readonly resources: KnownResources; readonly caller: Caller }
export type Action = (actor: Actor) => Promise<void>

const KEY_REUSE_CHANCE = 0.12
const STALE_CHANCE = 0.15
const TWIN_CHANCE = 0.25
const TWINS_MAX = 3

/** A key of the action's own, or one that the caller uses again by mistake. */
export const keyOf = ({ client: { action, random }, caller }: Actor, operation: string): string =>
  random.chance(KEY_REUSE_CHANCE) ? `${operation}-shared-${caller.subject}` : `${operation}-${action}`

/** The same request from several places at once, as a client with a retrying proxy in front of it sends it. */
export const withTwins = async ({ client }: Actor, request: Request): Promise<Answer | undefined> => {
  if (!client.random.chance(TWIN_CHANCE)) return client.insist(request)
  const twins = Array.from({ length: client.random.integer(2, TWINS_MAX) }, async () => {
    await client.sleep(client.random.next() * 20)
    return client.insist(request)
  })
  const answers = await Promise.all(twins)
  return answers.find(answer => answer !== undefined && answer.status < 300) ?? answers[0]
}

/** The ETag that the client knows, which others may have made stale, or a look at the present one first. */
export const etagOf = async (
  { client, resources, caller }: Actor,
  known: Known,
  kind: 'order' | 'invoice',
): Promise<string> => {
  if (client.random.chance(STALE_CHANCE)) return known.etag
  const read = await client.insist({ operation: `read_${kind}`, caller, id: known.id })
  return resources.learn(kind, caller.tenant, read)?.etag ?? known.etag
}
