import { z } from 'zod'

export const FILES = {
  events: 'events.jsonl',
  leaves: 'leaves.jsonl',
  heads: 'heads.jsonl',
  readme: 'README.md',
} as const
export const MANIFEST = 'manifest.json'
/** Is there while an export is under way. */
export const UNFINISHED = 'UNFINISHED'

export type FileName = (typeof FILES)[keyof typeof FILES]

const hash = z.string().regex(/^[0-9a-f]{64}$/)

/** Why a line of leaves.jsonl has no event: it is of another tenant, and is in the log as it was signed, or is not. */
export const WITHHELD = ['present', 'changed', 'missing'] as const

export const leafLineSchema = z.strictObject({
  index: z.int().min(0),
  leaf: hash,
  id: z.string().optional(),
  position: z.string().optional(),
  withheld: z.enum(WITHHELD).optional(),
})
export type LeafLine = z.infer<typeof leafLineSchema>

export const manifestSchema = z.strictObject({
  v: z.literal(1),
  format: z.literal('payment-ledger-evidence'),
  /** The id of the event that identifies the log. */
  log: z.string(),
  /** The tenant whose events are there; null for all. */
  tenant: z.string().nullable(),
  created_at: z.iso.datetime(),
  head: z.strictObject({ generation: z.int(), tree_size: z.int(), root: hash, time: z.iso.datetime() }),
  /** The number of lines of events.jsonl. */
  events: z.int().min(0),
  /** Signed events that the log no longer has, and events that are in the log and were never signed. */
  missing: z.int().min(0),
  surplus: z.int().min(0),
  files: z.record(z.string(), z.strictObject({ sha256: hash, bytes: z.int().min(0) })),
  /** The public keys of the heads by their ids: base64 of SubjectPublicKeyInfo. */
  keys: z.record(z.string(), z.string()),
})
export type Manifest = z.infer<typeof manifestSchema>
