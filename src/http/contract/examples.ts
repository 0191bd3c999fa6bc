import type { Json } from '../../ports.ts'

/** Examples for openapi.json, made from the schemas: a member has the example of its name, or else of its schema. */

const ID = '01JB3N8Q6Z4T1V7W9XAC2E5GHK'
const UUID = '0e9d2a44-5b1c-8f7e-a3d6-6c1b7e2f9a05'
const SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const POSITION = '7731904'

/** Examples of members whose schemas say less than their names. */
const BY_NAME: Readonly<Record<string, Json>> = {
  amount: 1_099,
  amount_due: 1_099,
  amount_outstanding: 1_099,
  api_key: `key_${ID}`,
  approved_by: 'user:dana',
  attempts: 10,
  byte_count: 48_213,
  client: 'shop',
  code: 'payment_exceeds_due',
  count: 412,
  created_by: 'user:dana',
  currency: 'USD',
  customer_reference: 'PO-7713',
  data: {},
  detail: '0 of 900 is still due (minor units of USD). Pay at most that, with a new Idempotency-Key.',
  exponent: 2,
  filters: {},
  href: `/payments/pay_${ID}`,
  instance: '/payments',
  key: ID,
  lag: 0,
  metadata: { shop: 'one' },
  name: 'reporting',
  next_cursor: 'eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0',
  operation: 'create_payment',
  prefix: 'lk_live_01JB3N8Q6Z',
  principal: 'warehouse',
  reason: 'Ordered twice.',
  reference: 'INV-2026-118',
  resource: `payments/pay_${ID}`,
  row_count: 412,
  secret: `lk_live_01JB3N8Q6Z_${SHA256.slice(0, 32)}_1f3a`,
  sku: 'tea',
  still_due: 0,
  source: '/payment-ledger',
  stop_reason: 'tenant_suspended',
  subject: 'user:dana',
  tenant_id: 'acme',
  tenantid: 'acme',
  title: 'The payment exceeds the amount due.',
  topic: `ledger.subscription.sub_${ID}`,
  dead_letter_topic: `ledger.subscription.sub_${ID}.dlq`,
  total_amount: 1_099,
  unit_amount: 1_099,
}

const BY_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2026-11-12T16:05:41.007Z',
  date: '2026-12-12',
  uuid: UUID,
  uri: 'https://ledger.example/schemas/payment.succeeded.v1.json',
}

/** Values of which one matches the pattern of any other text. */
const CANDIDATES = [
  'declined',
  POSITION,
  SHA256,
  '00000000000000000004',
  `00-${SHA256.slice(0, 32)}-${SHA256.slice(0, 16)}-01`,
]

type Schema = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textFor = ({ format, pattern, minLength }: Schema): string => {
  const formatted = typeof format === 'string' ? BY_FORMAT[format] : undefined
  if (formatted !== undefined) return formatted
  if (typeof pattern !== 'string') return typeof minLength === 'number' ? 'text' : POSITION
  const prefix = /^\^(\w+_)\[/.exec(pattern)?.[1]
  if (prefix !== undefined) return prefix + ID
  return CANDIDATES.find(candidate => new RegExp(pattern, 'u').test(candidate)) ?? ''
}

const isNull = (schema: unknown): boolean => isObject(schema) && schema['type'] === 'null'

const TYPE_OF: Readonly<Record<string, string>> = { string: 'string', number: 'integer', object: 'object' }

/** Whether the schema permits the example of its name: members of one name may have several types. */
const fits = (value: Json, { type, pattern }: Schema): boolean =>
  [type].flat().includes(TYPE_OF[typeof value]) &&
  (typeof pattern !== 'string' || (typeof value === 'string' && new RegExp(pattern, 'u').test(value)))

/** Long because its parts call each other on the same document. */
export const createExamples = (document: object) => {
  const target = (reference: string): Schema =>
    reference
      .split('/')
      .slice(1)
      .reduce<Schema>(
        (node, name) => (isObject(node[name]) ? node[name] : {}),
        Object.fromEntries(Object.entries(document)),
      )

  const ofObject = ({ properties, additionalProperties }: Schema): Json => {
    if (isObject(properties))
      return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, exampleOf(schema, name)]))
    const hasSchema = isObject(additionalProperties) && Object.keys(additionalProperties).length > 0
    return hasSchema ? { name: exampleOf(additionalProperties) } : {}
  }

  const ofType = (schema: Schema): Json => {
    const [type] = [schema['type']].flat()
    if (type === 'object') return ofObject(schema)
    if (type === 'array') return [exampleOf(schema['items'])]
    if (type === 'integer' || type === 'number') return (schema['minimum'] ?? 0) as Json
    if (type === 'boolean') return false
    return type === 'null' ? null : textFor(schema)
  }

  const exampleOf = (node: unknown, name = ''): Json => {
    const { $ref, ...own } = isObject(node) ? node : {}
    const schema: Schema = typeof $ref === 'string' ? { ...target($ref), ...own } : own
    const { examples, const: constant, default: usual, enum: values, anyOf, oneOf } = schema
    const alternatives = anyOf ?? oneOf
    if (Array.isArray(examples)) return examples[0] as Json
    if (constant !== undefined || usual !== undefined) return (constant ?? usual) as Json
    if (Array.isArray(alternatives))
      return exampleOf(
        alternatives.find(alternative => !isNull(alternative)),
        name,
      )
    const byName = BY_NAME[name]
    if (Array.isArray(values)) return (values.includes(byName) ? byName : values[0]) as Json
    return byName !== undefined && fits(byName, schema) ? byName : ofType(schema)
  }
  return exampleOf
}
