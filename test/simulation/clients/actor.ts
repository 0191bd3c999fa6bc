import type { Answer, Caller } from '../http.ts'
import type { Client, Request } from './client.ts'
import type { Kind, Known, Resources } from './resources.ts'

/** An action: one logical request of a client, with its retries and, in some cases, concurrent copies and mistakes. */
export type Actor = { readonly client: Client; readonly resources: Resources; readonly caller: Caller }
export type Action = (actor: Actor) => Promise<void>

const KEY_REUSE_CHANCE = 0.12
const OLD_ETAG_CHANCE = 0.15
const COPIES_CHANCE = 0.25
const COPIES_MAX = 3

/** The idempotency key of the action, or in some cases a key that the caller reuses by mistake. */
export const keyOf = ({ client: { action, random }, caller }: Actor, operation: string): string =>
  random.chance(KEY_REUSE_CHANCE) ? `${operation}-shared-${caller.subject}` : `${operation}-${action}`

/**
 * Sends the request, in some cases as several concurrent copies, like a proxy that retries. The resource in each answer, which
 * is of this `kind`, is known to the other clients of the tenant as soon as the answer arrives.
 */
export const sendWithCopies = async (
  { client, resources, caller }: Actor,
  request: Request,
  kind?: Kind,
): Promise<Answer | undefined> => {
  const send = async (): Promise<Answer | undefined> => {
    const answer = await client.sendWithRetries(request)
    if (kind) resources.learn(kind, caller.tenant, answer)
    return answer
  }
  if (!client.random.chance(COPIES_CHANCE)) return send()
  const copies = Array.from({ length: client.random.integer(2, COPIES_MAX) }, async () => {
    await client.sleep(client.random.next() * 20)
    return send()
  })
  const answers = await Promise.all(copies)
  return answers.find(answer => answer !== undefined && answer.status < 300) ?? answers[0]
}

/** The ETag for If-Match: usually read just before; else the one that the client knows, which may be out of date. */
export const etagOf = async (
  { client, resources, caller }: Actor,
  known: Known,
  kind: 'order' | 'invoice',
): Promise<string> => {
  if (client.random.chance(OLD_ETAG_CHANCE)) return known.etag
  const read = await client.sendWithRetries({ operation: `read_${kind}`, caller, id: known.id })
  return resources.learn(kind, caller.tenant, read)?.etag ?? known.etag
}
