import type { Answer, Caller } from '../http.ts'
import type { Client, Request } from './client.ts'
import type { Kind, Known, KnownResources } from './knownResources.ts'

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

/**
 * The same request from several places at once, as a client with a retrying proxy in front of it sends it. `kind` is that of
 * the resource in the answer, which others hear of as soon as one of the places does.
 */
export const withTwins = async (
  { client, resources, caller }: Actor,
  request: Request,
  kind?: Kind,
): Promise<Answer | undefined> => {
  const send = async (): Promise<Answer | undefined> => {
    const answer = await client.insist(request)
    if (kind) resources.learn(kind, caller.tenant, answer)
    return answer
  }
  if (!client.random.chance(TWIN_CHANCE)) return send()
  const twins = Array.from({ length: client.random.integer(2, TWINS_MAX) }, async () => {
    await client.sleep(client.random.next() * 20)
    return send()
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
