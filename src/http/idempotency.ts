import { claimOf, type ScopedKey } from '../commands/identifiers.ts'
import type { Principal } from '../identity/principal.ts'
import type { JsonObject } from '../ports.ts'
import type { Claim } from '../../streams/claim.ts'
import { Problem } from './problem.ts'
import type { AnyRoute, Call } from './route.ts'

/** A structured-field string (RFC 8941 §3.3.3) or the bare text: the two are one key. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/
const KEY = /^[\x21-\x7e]{1,255}$/

/** The text of the key. Throws Problem `idempotency_key_invalid`. */
export const parseKey = (header: string): string => {
  const quoted = QUOTED.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replaceAll(/\\(["\\])/g, '$1')
  if (!KEY.test(key) || (quoted === undefined && key.includes('"')))
    throw new Problem('idempotency_key_invalid', { detail: '1 to 255 visible ASCII characters, quoted or bare.' })
  return key
}

/** The key in the scope of tenant, caller and operation, where the route has use for one. `lines`: of the header. */
export const scopedKeyOf = (
  declared: AnyRoute,
  principal: Principal,
  [header, ...others]: readonly string[] = [],
): ScopedKey | undefined => {
  if (!declared.idempotencyKey) return undefined
  if (header === undefined) {
    if (declared.idempotencyKey === 'required') throw new Problem('idempotency_key_missing')
    return undefined
  }
  if (others.length > 0) throw new Problem('idempotency_key_invalid', { detail: 'One Idempotency-Key header.' })
  const { tenant, subject, client } = principal
  return { scope: { tenant, subject, client, operation: declared.operationId }, key: parseKey(header) }
}

/** The claim that this call makes on its key; null when it has none. */
export const claimFor = (
  call: Pick<Call<unknown, unknown, unknown>, 'idempotency' | 'ledger' | 'idempotencyRetentionMs'>,
  request: JsonObject,
): Claim | null =>
  call.idempotency === undefined
    ? null
    : claimOf(call.idempotency, request, new Date(call.ledger.world.now() + call.idempotencyRetentionMs).toISOString())
