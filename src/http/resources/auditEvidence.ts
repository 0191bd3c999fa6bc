import { z } from 'zod'
import { isDeletedStream } from '../../evidence/continuity.ts'
import type { Head } from '../../evidence/heads.ts'
import { headOfSize, headsBefore, lastHead, provableHead, publicKeys } from '../../evidence/headStore.ts'
import { leafOfEvent, type IndexedLeaf } from '../../evidence/leaves.ts'
import { leafHash } from '../../evidence/merkle.ts'
import { canonicalRecord } from '../../evidence/record.ts'
import { inclusionProof } from '../../evidence/tree.ts'
import { EVENT_STATES, shownTo, WITHHELD_REASONS } from '../../evidence/withholding.ts'
import type { EventStore } from '../../ports.ts'
import { Problem } from '../problems/problemCatalogue.ts'
import { type AnyRoute, route } from '../route.ts'
import { recordLook } from './auditRecords.ts'
import { PRIVATE_CACHING } from './commonReplies.ts'
import { positionSchema } from '../request/position.ts'
import { timeSchema } from './commonSchemas.ts'
import { keyInCursor, pageQuery, pageReply, listFromLog } from './paging.ts'

/** Tamper evidence (src/evidence): the signed heads of the tree over all events, and proofs of single events. */

const hashSchema = z.string().regex(/^[0-9a-f]{64}$/)
const sizeSchema = z.int().min(0)

const headSchema = z
  .object({
    v: z.literal(1),
    log: z.string().meta({ description: 'The id of the event that identifies the log.' }),
    generation: z.int().min(1).meta({
      description:
        'One more for each restored log that an operator has accepted; it begins with a head that has `restart`.',
    }),
    tree_size: sizeSchema.meta({ description: 'The number of events.' }),
    root: hashSchema.meta({
      description: 'The root of the Merkle tree (RFC 6962, section 2.1, SHA-256), hexadecimal.',
    }),
    position: z.string().meta({ description: 'The position of the last of the events in the log.' }),
    time: timeSchema,
    previous_size: sizeSchema.meta({ description: 'The size of the head before; zero for the first.' }),
    restart: z
      .object({
        kept_size: sizeSchema,
        abandoned_size: sizeSchema,
        abandoned_root: hashSchema,
        audit_record: z.string(),
        accepted: z
          .object({ by: z.string(), reason: z.string(), abandoned_generation: z.int() })
          .meta({ description: 'The acceptance: by whom and why, and the generation of the abandoned head.' }),
      })
      .optional()
      .meta({ description: 'The accepted loss of events with which a generation begins.' }),
    key: z.string().meta({
      description: 'The beginning of the SHA-256 of the public key (SubjectPublicKeyInfo, DER), hexadecimal.',
    }),
    consistency: z.array(hashSchema).meta({
      description: 'The proof that the tree of `previous_size` is the beginning of this one (RFC 9162, section 2.1.4).',
    }),
    signature: z.string().meta({
      description:
        'Ed25519, base64, over the canonical JSON (RFC 8785) of the members above without `consistency`: v, log, generation, ' +
        'tree_size, root, position, time, previous_size, restart where there is one, and key.',
    }),
    public_key: z.string().meta({
      description: 'SubjectPublicKeyInfo, base64. Compare it with one that you got from elsewhere.',
    }),
  })
  .meta({ id: 'AuditHead' })

const render = (head: Head, keys: ReadonlyMap<string, string>): z.input<typeof headSchema> => ({
  ...head,
  public_key: keys.get(head.key) ?? '',
})

const cursorSchema = z.object({ generation: z.int(), tree_size: z.int() })

const listAuditHeads = route({
  method: 'GET',
  path: '/audit/heads',
  operationId: 'list_audit_heads',
  summary: 'List the signed heads of the tree over all events, newest first',
  description: 'The heads are also in a file outside the databases. Looking at them is an audit record.',
  tag: 'Audit',
  scope: 'audit:read',
  audited: 'none',
  query: z.object(pageQuery),
  order: ['-generation', '-tree_size'],
  ...listFromLog(headSchema),
  handler: async call => {
    const { sql } = call.database
    const { limit, cursor } = call.query
    const binding = { tenant: call.principal.tenant, path: call.path }
    const before = keyInCursor(call, cursor, { binding, schema: cursorSchema })
    await recordLook(call, 'list_audit_heads', null)
    const [heads, keys, newest] = [
      await headsBefore(sql, before, limit + 1),
      await publicKeys(sql),
      await lastHead(sql),
    ]
    const items = heads.slice(0, limit)
    const last = items.at(-1)
    const isLast = heads.length <= limit || last === undefined
    const page = {
      items: items.map(head => render(head, keys)),
      next: isLast ? undefined : { generation: last.generation, tree_size: last.tree_size },
      ...{ binding, asOfPosition: newest?.position ?? '0', parameters: { limit } },
    }
    return pageReply(call, page, PRIVATE_CACHING)
  },
})

const proofSchema = z
  .object({
    event_id: z.uuid(),
    leaf_index: sizeSchema.meta({ description: 'The index of the event in the tree, from 0.' }),
    leaf_hash: hashSchema.meta({
      description:
        'SHA-256 of a zero byte and the event’s canonical JSON, hexadecimal. Where nothing is withheld, those are the bytes of `event`.',
    }),
    inclusion_path: z.array(hashSchema).meta({
      description: 'The hashes from the leaf to the root (RFC 9162, section 2.1.3), hexadecimal.',
    }),
    head: headSchema,
    event: z
      .string()
      .nullable()
      .meta({
        description:
          'The event as it is in the log now, as a text of canonical JSON (RFC 8785), without what is withheld. Null if the event is ' +
          'missing or is withheld whole.',
      }),
    event_state: z.enum(EVENT_STATES).meta({
      description:
        'How the service finds the event in the log now: `present` if it has leaf_hash, `changed` if it has another hash, or `missing`.',
    }),
    withheld: z.array(z.object({ pointer: z.string(), reason: z.enum(WITHHELD_REASONS) })).meta({
      description:
        'The parts that `event` does not show, each by its JSON pointer (RFC 6901), which is empty for the whole event, and the reason. ' +
        'If there are any, you cannot compute leaf_hash from `event`: the path proves that leaf_hash is under the signed head, and event_state ' +
        'is what the service says of the event behind it. An operator can check that against the store with `ledger streams show`.',
    }),
  })
  .meta({ id: 'AuditProof' })

type EventOfProof = Pick<z.input<typeof proofSchema>, 'event' | 'event_state' | 'withheld'>

/** The members of the proof about the event that is at the place of the leaf. */
const eventAt = async (
  store: Pick<EventStore, 'readStream'>,
  { stream, revision, hash }: IndexedLeaf,
): Promise<EventOfProof> => {
  try {
    for await (const event of store.readStream(stream, { from: revision, limit: 1, withBytes: true })) {
      if (event.revision !== revision) continue
      const record = canonicalRecord(event)
      return { ...shownTo(stream, record), event_state: leafHash(record).equals(hash) ? 'present' : 'changed' }
    }
  } catch (error) {
    if (!isDeletedStream(error)) throw error
  }
  return { event: null, event_state: 'missing', withheld: [] }
}

const readAuditProof = route({
  method: 'GET',
  path: '/audit/proof/{event_id}',
  operationId: 'read_audit_proof',
  summary: 'Prove that an event is in the log as it was stored',
  description:
    'The inclusion proof of an event of the caller’s tenant, with the signed head that it leads to. An event is signed some ' +
    'seconds after it was stored; until then it is a 404. Events of API keys and idempotency records are withheld, as histories ' +
    'withhold them. Looking at a proof is an audit record.',
  tag: 'Audit',
  scope: 'audit:read',
  audited: 'none',
  params: z.object({ event_id: z.uuid().meta({ description: 'The id of an event, as histories and facts have it.' }) }),
  query: z.object({
    tree_size: positionSchema
      .optional()
      .meta({ description: 'The size of the signed head to prove against; the newest one by default.' }),
  }),
  responses: { 200: { description: 'The proof.', schema: proofSchema } },
  errors: ['resource_not_found'],
  handler: async call => {
    const { sql } = call.database
    const { event_id } = call.params
    const size = call.query.tree_size
    const leaf = await leafOfEvent(sql, event_id)
    const head = size === undefined ? await provableHead(sql) : await headOfSize(sql, Number(size))
    const isOwn = leaf !== undefined && leaf.tenant === call.principal.tenant
    if (!isOwn || head === undefined || leaf.index >= head.tree_size) throw new Problem('resource_not_found')
    await recordLook(call, 'read_audit_proof', event_id)
    const path = await inclusionProof(sql, leaf.index, head.tree_size)
    const body: z.input<typeof proofSchema> = {
      event_id: leaf.eventId,
      leaf_index: leaf.index,
      leaf_hash: leaf.hash.toString('hex'),
      inclusion_path: path.map(hash => hash.toString('hex')),
      head: render(head, await publicKeys(sql)),
      ...(await eventAt(call.ledger.store, leaf)),
    }
    return { status: 200, body, headers: PRIVATE_CACHING }
  },
})

export const auditEvidenceRoutes: readonly AnyRoute[] = [listAuditHeads, readAuditProof]
