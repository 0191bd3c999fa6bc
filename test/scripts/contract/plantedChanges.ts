import {
  fact,
  limit,
  type Node,
  operation,
  orders,
  ownResponse,
  payments,
  type PlantedChange,
  schema,
  topic,
  without,
} from './copies.ts'

/** Breaking changes, each with the rule that must report it. */

const OPERATIONS: readonly PlantedChange[] = [
  {
    change: 'an endpoint is removed',
    rule: 'endpoint-removed',
    plant: copy => delete copy.openapi.paths['/orders'].get,
  },
  {
    change: 'an operation id changes',
    rule: 'operation-id-changed',
    plant: copy => (payments(copy).operationId = 'pay'),
  },
  {
    change: 'a query parameter is removed',
    rule: 'parameter-removed',
    plant: copy => (orders(copy).parameters = orders(copy).parameters.filter((one: Node) => one.name !== 'state')),
  },
  {
    change: 'a required query parameter is added',
    rule: 'parameter-required',
    plant: copy =>
      orders(copy).parameters.push({ in: 'query', name: 'year', required: true, schema: { type: 'integer' } }),
  },
  {
    change: 'a header becomes required',
    rule: 'parameter-required',
    plant: copy => (copy.openapi.components.parameters['Idempotency-Key'].required = true),
  },
  {
    change: 'a parameter gets a member that the policy does not know',
    rule: 'unknown-change',
    plant: copy => (orders(copy).parameters.find((one: Node) => one.name === 'state').explode = true),
  },
  {
    change: 'a body becomes required',
    rule: 'body-required',
    plant: copy => (operation(copy, 'post', '/orders/{id}:cancel').requestBody.required = true),
  },
  { change: 'a body is removed', rule: 'body-removed', plant: copy => delete payments(copy).requestBody },
  {
    change: 'the media type of a request changes',
    rule: 'media-type-removed',
    plant: copy => {
      const { content } = operation(copy, 'patch', '/orders/{id}').requestBody
      content['application/json'] = content['application/merge-patch+json']
      delete content['application/merge-patch+json']
    },
  },
  {
    change: 'a media type of a response is removed',
    rule: 'media-type-removed',
    plant: copy => delete operation(copy, 'get', '/exports/{id}/content').responses['200'].content['text/csv'],
  },
  {
    change: 'a scope changes',
    rule: 'scope-changed',
    plant: copy => (payments(copy).security = [{ oauth: ['payments:admin'] }]),
  },
  {
    change: 'a public endpoint asks for a credential',
    rule: 'scope-changed',
    plant: copy => (operation(copy, 'get', '/schemas').security = [{ oauth: ['orders:read'] }]),
  },
  {
    change: 'a second scope suffices',
    rule: 'authorization-widened',
    plant: copy => payments(copy).security.push({ oauth: ['payments:read'] }),
  },
  {
    change: 'a kind of credential is refused',
    rule: 'credential-refused',
    plant: copy => (payments(copy)['x-credentials'] = without(payments(copy)['x-credentials'], 'user')),
  },
  {
    change: 'a kind of credential is permitted',
    rule: 'authorization-widened',
    plant: copy => payments(copy)['x-credentials'].push('api_key'),
  },
  {
    change: 'the rate class changes',
    rule: 'rate-class-changed',
    plant: copy => (orders(copy)['x-rate-class'] = 'exports'),
  },
  {
    change: 'the deadline is shortened',
    rule: 'limit-narrowed',
    plant: copy => (payments(copy)['x-deadline-seconds'] = 2),
  },
  {
    change: 'the order of a list changes',
    rule: 'page-order-changed',
    plant: copy => (orders(copy)['x-order'] = ['created_at', 'id']),
  },
  {
    change: 'an unknown term of an operation changes',
    rule: 'unknown-change',
    plant: copy => (orders(copy)['x-new'] = 1),
  },
]

const RESPONSES: readonly PlantedChange[] = [
  {
    change: 'a success status is removed',
    rule: 'status-removed',
    plant: copy => delete payments(copy).responses['202'],
  },
  {
    change: 'a success status changes',
    rule: 'status-added',
    plant: copy => {
      payments(copy).responses['200'] = payments(copy).responses['201']
      delete payments(copy).responses['201']
    },
  },
  {
    change: 'a response header is removed',
    rule: 'header-removed',
    plant: copy => delete payments(copy).responses['201'].headers.Location,
  },
  {
    change: 'a response header becomes optional',
    rule: 'header-optional',
    plant: copy => delete copy.openapi.components.headers['X-Correlation-ID'].required,
  },
  {
    change: 'an error code of an operation is removed',
    rule: 'error-code-removed',
    plant: copy => {
      const response = ownResponse(copy, payments(copy), '409')
      response['x-error-codes'] = without(response['x-error-codes'], 'payment_exceeds_due')
    },
  },
  {
    change: 'an error code is removed from the table',
    rule: 'error-code-removed',
    plant: copy => delete copy.openapi['x-problems'].payment_exceeds_due,
  },
  {
    change: 'an error code moves to another status',
    rule: 'error-status-changed',
    plant: copy => {
      const { 409: conflict, ...others } = {
        ...payments(copy).responses,
        409: ownResponse(copy, payments(copy), '409'),
      }
      payments(copy).responses = { ...others, 418: conflict }
    },
  },
  {
    change: 'the status of an error code changes in the table',
    rule: 'error-status-changed',
    plant: copy => (copy.openapi['x-problems'].payment_exceeds_due.status = 422),
  },
  {
    change: 'the category of an error code changes',
    rule: 'error-category-changed',
    plant: copy => (copy.openapi['x-problems'].payment_exceeds_due.category = 'invalid_input'),
  },
  {
    change: 'the retry strategy of an operation’s error changes',
    rule: 'retry-changed',
    plant: copy => (ownResponse(copy, payments(copy), '504')['x-retry'].deadline_exceeded.strategy = 'same_request'),
  },
  {
    change: 'an error is no longer retryable',
    rule: 'retry-changed',
    plant: copy => (copy.openapi['x-problems'].overloaded.retry.retryable = false),
  },
  {
    change: 'the pause before a retry is no longer stated',
    rule: 'retry-changed',
    plant: copy => delete copy.openapi['x-problems'].overloaded.retry.after_seconds,
  },
]

const SCHEMAS: readonly PlantedChange[] = [
  {
    change: 'a field of a response is removed',
    rule: 'field-removed',
    plant: copy => delete schema(copy, 'Invoice').properties.amount_paid,
  },
  {
    change: 'a field of a request is removed',
    rule: 'field-removed',
    plant: copy => delete schema(copy, 'NewPayment').properties.reference,
  },
  {
    change: 'a required field is added to a request',
    rule: 'required-field-added',
    plant: copy => {
      schema(copy, 'NewPayment').properties.purpose = { type: 'string' }
      schema(copy, 'NewPayment').required.push('purpose')
    },
  },
  {
    change: 'an optional field of a request becomes required',
    rule: 'field-required',
    plant: copy => schema(copy, 'NewPayment').required.push('reference'),
  },
  {
    change: 'a field of a response may be absent',
    rule: 'field-no-longer-sent',
    plant: copy => (schema(copy, 'Payment').required = without(schema(copy, 'Payment').required, 'amount')),
  },
  {
    change: 'the type of a field changes',
    rule: 'type-changed',
    plant: copy => (schema(copy, 'Payment').properties.amount.type = 'string'),
  },
  {
    change: 'a field of a response may be null',
    rule: 'type-changed',
    plant: copy => (schema(copy, 'Payment').properties.tenant_id.type = ['string', 'null']),
  },
  {
    change: 'a field of a response may be null, as an alternative',
    rule: 'alternative-added',
    plant: copy => {
      const { properties } = schema(copy, 'Payment')
      properties.created_at = { anyOf: [properties.created_at, { type: 'null' }] }
    },
  },
  {
    change: 'an alternative of a request is removed',
    rule: 'alternative-removed',
    plant: copy => schema(copy, 'NewExport').oneOf.pop(),
  },
  {
    change: 'a value of a response is removed',
    rule: 'enum-value-removed',
    plant: copy => schema(copy, 'Payment').properties.state.enum.pop(),
  },
  {
    change: 'a value of a request is removed',
    rule: 'enum-value-removed',
    plant: copy => schema(copy, 'NewPayment').properties.settlement.enum.pop(),
  },
  {
    change: 'a text of a request is restricted to some values',
    rule: 'enum-closed',
    plant: copy => (schema(copy, 'NewApiKey').properties.name.enum = ['reporting']),
  },
  {
    change: 'a list of values in a response is opened',
    rule: 'enum-opened',
    plant: copy => delete schema(copy, 'Payment').properties.state.enum,
  },
  {
    change: 'a maximum of a request is lowered',
    rule: 'bound-narrowed',
    plant: copy => (schema(copy, 'NewPayment').properties.amount.maximum = 1_000),
  },
  {
    change: 'a minimum length appears in a request',
    rule: 'bound-narrowed',
    plant: copy => (orders(copy).parameters.find((one: Node) => one.name === 'cursor').schema.minLength = 20),
  },
  { change: 'the maximum page is smaller', rule: 'bound-narrowed', plant: copy => (limit(copy).maximum = 50) },
  {
    change: 'a maximum of a response is raised',
    rule: 'bound-exceeded',
    plant: copy => (schema(copy, 'Order').properties.exponent.maximum = 8),
  },
  {
    change: 'the pattern of an id changes',
    rule: 'pattern-changed',
    plant: copy => (schema(copy, 'Payment').properties.id.pattern = '^payment_[0-9]+$'),
  },
  {
    change: 'a request must match a pattern',
    rule: 'pattern-changed',
    plant: copy => (schema(copy, 'NewApiKey').properties.name.pattern = '^[a-z]+$'),
  },
  {
    change: 'a format changes',
    rule: 'format-changed',
    plant: copy => (schema(copy, 'Timestamp').format = 'date'),
  },
  { change: 'the default page changes', rule: 'default-changed', plant: copy => (limit(copy).default = 50) },
  {
    change: 'the default of a field changes',
    rule: 'default-changed',
    plant: copy => (schema(copy, 'NewPayment').properties.settlement.default = 'deferred'),
  },
  {
    change: 'undeclared fields are refused',
    rule: 'closed-to-fields',
    plant: copy => (schema(copy, 'Payment').properties.metadata.additionalProperties = false),
  },
  {
    change: 'a schema gets a keyword that the policy does not know',
    rule: 'unknown-change',
    plant: copy => (schema(copy, 'NewPayment').dependentRequired = { reference: ['settlement'] }),
  },
]

const TERMS: readonly PlantedChange[] = [
  {
    change: 'bodies may be smaller',
    rule: 'limit-narrowed',
    plant: copy => (copy.openapi['x-limits'].body_bytes_max = 1_024),
  },
  {
    change: 'keys are remembered for a shorter time',
    rule: 'limit-narrowed',
    plant: copy => (copy.openapi['x-limits'].idempotency_retention_days = 7),
  },
  {
    change: 'fewer requests are permitted',
    rule: 'limit-narrowed',
    plant: copy => (copy.openapi['x-rate-limits'].payments.requests = 60),
  },
  {
    change: 'the header of API keys changes',
    rule: 'security-scheme-changed',
    plant: copy => (copy.openapi.components.securitySchemes.apiKey.name = 'X-Key'),
  },
  { change: 'the address changes', rule: 'server-changed', plant: copy => (copy.openapi.servers[0].url = '/v2') },
]

const FACTS: readonly PlantedChange[] = [
  { change: 'a topic is removed', rule: 'channel-removed', plant: copy => delete copy.asyncapi.channels.payment },
  {
    change: 'a topic is renamed',
    rule: 'channel-changed',
    plant: copy => (topic(copy, 'payment').address = 'ledger.payment.v2'),
  },
  {
    change: 'a topic has more partitions',
    rule: 'partitions-changed',
    plant: copy => (topic(copy, 'payment').bindings.kafka.partitions = 24),
  },
  {
    change: 'a topic keeps its facts for a shorter time',
    rule: 'retention-narrowed',
    plant: copy => (topic(copy, 'payment').bindings.kafka.topicConfiguration['retention.ms'] = 3_600_000),
  },
  {
    change: 'the guarantee of a channel changes',
    rule: 'delivery-changed',
    plant: copy => (topic(copy, 'events')['x-delivery'].order = 'none'),
  },
  {
    change: 'a fact is no longer published',
    rule: 'message-removed',
    plant: copy => delete topic(copy, 'invoice').messages['invoice.paid.v1'],
  },
  {
    change: 'the key of a message changes',
    rule: 'message-key-changed',
    plant: copy => (copy.asyncapi.components.messages['invoice.paid.v1'].bindings.kafka.key.type = 'integer'),
  },
  {
    change: 'a member of a fact is removed',
    rule: 'field-removed',
    plant: copy => delete fact(copy, 'invoice.paid.v1').properties.payment_id,
  },
  {
    change: 'a member of a fact may be absent',
    rule: 'field-no-longer-sent',
    plant: copy =>
      (fact(copy, 'invoice.paid.v1').required = without(fact(copy, 'invoice.paid.v1').required, 'payment_id')),
  },
  {
    change: 'a closed list of a fact gets a value',
    rule: 'event-value-added',
    plant: copy => fact(copy, 'payment.succeeded.v1').properties.settlement.enum.push('instalments'),
  },
  {
    change: 'a header of the messages is removed',
    rule: 'field-removed',
    plant: copy => delete fact(copy, 'kafka-headers').properties.ce_sequence,
  },
  {
    change: 'the address of a schema is removed',
    rule: 'schema-removed',
    plant: copy => delete fact(copy, 'invoice.paid.v1')['x-published-at'],
  },
]

export const BREAKING: readonly PlantedChange[] = [...OPERATIONS, ...RESPONSES, ...SCHEMAS, ...TERMS, ...FACTS]
