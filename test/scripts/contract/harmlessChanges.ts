import { fact, limit, orders, ownResponse, payments, type PlantedChange, schema, topic, without } from './copies.ts'

/** Compatible changes, each with the rule that must list it, and changes that no client can notice. */

export const COMPATIBLE: readonly PlantedChange[] = [
  {
    change: 'an endpoint is added',
    rule: 'endpoint-added',
    plant: copy => (copy.openapi.paths['/receipts'] = { get: structuredClone(orders(copy)) }),
  },
  {
    change: 'an optional query parameter is added',
    rule: 'parameter-added',
    plant: copy => orders(copy).parameters.push({ in: 'query', name: 'year', schema: { type: 'integer' } }),
  },
  {
    change: 'a required header becomes optional',
    rule: 'parameter-optional',
    plant: copy => (copy.openapi.components.parameters['If-Match'].required = false),
  },
  {
    change: 'an optional field is added to a request',
    rule: 'field-added',
    plant: copy => (schema(copy, 'NewPayment').properties.purpose = { type: 'string' }),
  },
  {
    change: 'a field is added to a response',
    rule: 'field-added',
    plant: copy => {
      schema(copy, 'Payment').properties.purpose = { type: 'string' }
      schema(copy, 'Payment').required.push('purpose')
    },
  },
  {
    change: 'a required field of a request becomes optional',
    rule: 'field-optional',
    plant: copy => (schema(copy, 'NewPayment').required = without(schema(copy, 'NewPayment').required, 'currency')),
  },
  {
    change: 'a value is added to a response',
    rule: 'enum-value-added',
    plant: copy => schema(copy, 'Payment').properties.state.enum.push('disputed'),
  },
  {
    change: 'a value is added to a request',
    rule: 'enum-value-added',
    plant: copy => schema(copy, 'NewPayment').properties.settlement.enum.push('instalments'),
  },
  {
    change: 'a maximum of a request is raised',
    rule: 'bound-widened',
    plant: copy => (limit(copy).maximum = 200),
  },
  {
    change: 'a response header is added',
    rule: 'header-added',
    plant: copy => (payments(copy).responses['201'].headers['X-New'] = { schema: { type: 'string' } }),
  },
  {
    change: 'an error code is added',
    rule: 'error-code-added',
    plant: copy => ownResponse(copy, payments(copy), '409')['x-error-codes'].push('order_state_conflict'),
  },
  {
    change: 'a pause before a retry is longer',
    rule: 'retry-pause-changed',
    plant: copy => (copy.openapi['x-problems'].overloaded.retry.after_seconds = 5),
  },
  {
    change: 'a media type of a response is added',
    rule: 'media-type-added',
    plant: copy => {
      const { content } = orders(copy).responses['200']
      content['text/csv'] = { schema: { type: 'string' } }
    },
  },
  {
    change: 'a conditional response is added',
    rule: 'error-status-added',
    plant: copy => (orders(copy).responses['304'] = { description: 'The caller’s copy is current.' }),
  },
  {
    change: 'more requests are permitted',
    rule: 'limit-widened',
    plant: copy => (copy.openapi['x-rate-limits'].payments.requests = 900),
  },
  { change: 'an operation is deprecated', rule: 'deprecated', plant: copy => (orders(copy).deprecated = true) },
  {
    change: 'a new fact is published',
    rule: 'message-added',
    plant: copy =>
      (topic(copy, 'invoice').messages['invoice.paid.v2'] = { $ref: '#/components/messages/invoice.paid.v1' }),
  },
  {
    change: 'a member is added to a fact',
    rule: 'field-added',
    plant: copy => (fact(copy, 'invoice.paid.v1').properties.channel = { type: 'string' }),
  },
]

/** Changes that no client can notice. */
export const EDITORIAL: readonly PlantedChange['plant'][] = [
  copy => (payments(copy).description = 'Other words.'),
  copy => (schema(copy, 'Payment').properties.amount.description = 'Other words.'),
  copy =>
    (schema(copy, 'Payment').properties = Object.fromEntries(
      Object.entries(schema(copy, 'Payment').properties).toReversed(),
    )),
  copy => schema(copy, 'Payment').properties.state.enum.sort(),
  copy => (payments(copy).responses['201'].content['application/json'].example = {}),
  copy => (payments(copy).responses['409'] = ownResponse(copy, payments(copy), '409')),
]
