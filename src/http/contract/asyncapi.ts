import { z } from 'zod'
import { facts } from '../../../projections/facts/projection.ts'
import { TOPIC_PARTITIONS, topicOf } from '../../../projections/factTopics.ts'
import { type FactKind, kindsIn } from '../../../streams/facts.ts'
import { aggregates, type Category } from '../../../streams/index.ts'
import type { JsonObject } from '../../ports.ts'
import { TOPIC_RETENTION_MS } from '../../settings/retention.ts'
import { DEAD_LETTER, kindName, messageName, messages, type Named, reference, schemas } from './asyncapiMessages.ts'
import { factKinds } from './factSchemas.ts'
import { type AnyRoute, route } from '../route.ts'
import { SUBSCRIBABLE_TYPES } from '../resources/subscriptions/subscriptionSchemas.ts'
import { OLDEST_VERSION, type Version } from '../versions/index.ts'

/** asyncapi.json: the published facts, their channels and guarantees, from the same maps as the facts themselves. */

const DESCRIPTION = `The published facts of the ledger, for accounting systems, data warehouses and partners.

- **At least once.** A fact may be delivered again, byte for byte the same. Ignore an id (with its source) that was processed.
- **In order per key.** The key is the id of the resource, so its facts are in one partition, in the order of \`sequence\`.
  Facts of different resources have no order in Kafka; at GET /events they have the order of \`position\`.
- **Complete.** Every fact belongs to an event in the log, and every such event is published. A fact that cannot be delivered
  waits together with every later one of its key until an operator releases them; the other keys are not delayed.
- **Equal everywhere.** GET /events returns the same ids and data as Kafka, for the whole history of the ledger; topics keep
  7 days.
- **Amounts** are integers in minor units, as of the event, with the exponent of the currency beside them.

**How facts change.** Within a version there are only additions: new members, new types, new values where the schema says that
other values may be added. Consumers ignore unknown members and types. A change that may break a consumer is a new version,
published beside the old one on topics of its own (\`ledger.invoice.v2\`) for at least 12 months. Its end is announced at least
90 days before, in CHANGELOG.md and here. The policy is in CONTRIBUTING.md, "How a fact evolves".`

/** The guarantees of a channel, in words that the contract diff compares. */
type Delivery = {
  readonly guarantee: 'at least once'
  readonly order: 'per key' | 'by position'
  readonly replay: string
}

const inTopic = (replay: string): Delivery => ({ guarantee: 'at least once', order: 'per key', replay })

type Channel = {
  readonly address: string
  readonly server: 'kafka' | 'http'
  readonly title: string
  readonly description: string
  readonly kinds: readonly FactKind[]
  /** The names of messages that are not facts. */
  readonly others?: readonly string[]
  readonly delivery: Delivery
  readonly more?: JsonObject
}

const analystsTopic = (category: Category): Channel => {
  const topic = topicOf(category)
  return {
    address: topic,
    server: 'kafka',
    title: `Facts of each ${category}`,
    description: 'The facts of all tenants, for analysts of the operator.',
    kinds: kindsIn(aggregates[category].facts),
    delivery: inTopic('GET /events, from any position of the whole history'),
    more: {
      bindings: {
        kafka: {
          topic,
          partitions: TOPIC_PARTITIONS,
          topicConfiguration: { 'cleanup.policy': ['delete'], 'retention.ms': TOPIC_RETENTION_MS },
          bindingVersion: '0.5.0',
        },
      },
    },
  }
}

/** The facts that tenants can subscribe to: all but those of the system tenant. */
const subscribable = factKinds.filter(({ type }) => SUBSCRIBABLE_TYPES.some(name => name === type))

const subscriptionId = {
  parameters: { id: { description: 'The id of the subscription.', examples: ['sub_01JB3N8Q6Z4T1V7W9XAC2E5GHK'] } },
}

const channels: Readonly<Record<string, Channel>> = {
  ...Object.fromEntries(
    (Object.keys(aggregates) as Category[])
      .filter(category => facts.categories.includes(category))
      .map(category => [category, analystsTopic(category)]),
  ),
  subscription: {
    address: 'ledger.subscription.{id}',
    server: 'kafka',
    title: 'Facts of one subscription',
    description:
      'The facts of the subscriber’s own tenant and subscribed types, while its creator is permitted to read them.',
    kinds: subscribable,
    delivery: inTopic('POST /subscriptions/{id}:replay, from any position of the whole history'),
    more: subscriptionId,
  },
  subscription_dead_letters: {
    address: 'ledger.subscription.{id}.dlq',
    server: 'kafka',
    title: 'Dead letters of one subscription',
    description: 'The facts that could not be delivered, with the reasons.',
    kinds: [],
    delivery: inTopic('none: GET /subscriptions/{id}/dead-letters lists what is parked'),
    others: [DEAD_LETTER],
    more: subscriptionId,
  },
  events: {
    address: '/events',
    server: 'http',
    title: 'Facts as server-sent events',
    description:
      'GET /events with Accept: text/event-stream. id: an opaque position, after which Last-Event-ID resumes; event: the type; ' +
      'data: the CloudEvent as JSON. The facts are those of the caller’s own tenant. openapi.json describes the same endpoint with pages.',
    kinds: factKinds,
    delivery: { guarantee: 'at least once', order: 'by position', replay: 'from any position of the whole history' },
  },
}

const channelOf = (channel: Channel): JsonObject => ({
  address: channel.address,
  title: channel.title,
  description: channel.description,
  'x-delivery': channel.delivery,
  servers: [reference('servers', channel.server)],
  messages: Object.fromEntries([
    ...channel.kinds.map(kind => [
      kindName(kind),
      reference('components', 'messages', messageName(channel.server, kind)),
    ]),
    ...(channel.others ?? []).map(name => [name, reference('components', 'messages', name)]),
  ]),
  ...channel.more,
})

// AsyncAPI 3: the action is seen from this service, which sends.
const operationOf = (name: string, { server, title }: Channel): JsonObject => ({
  action: 'send',
  channel: reference('channels', name),
  title,
  ...(server === 'http' ? { bindings: { http: { method: 'GET', bindingVersion: '0.3.0' } } } : {}),
})

const bearer = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description:
    'An access token with the scope events:read and the read scopes of the resources that the facts are about; /.well-known/oauth-protected-resource names its issuers.',
}

const servers: Named = {
  kafka: {
    host: '{bootstrap}',
    protocol: 'kafka',
    description: 'The brokers of the installation (KAFKA_BROKERS), with the authentication that they require.',
    variables: { bootstrap: { default: 'localhost:9092', description: 'A bootstrap broker.' } },
  },
  http: {
    host: '{host}',
    protocol: 'http',
    description: 'This service, which serves this document.',
    variables: { host: { default: 'localhost:8080', description: 'The host that serves this document.' } },
    security: [reference('components', 'securitySchemes', 'bearer')],
  },
}

const document = {
  asyncapi: '3.0.0',
  info: {
    title: 'Facts of the payment ledger',
    version: OLDEST_VERSION,
    description: DESCRIPTION,
    license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
  },
  defaultContentType: 'application/json',
  servers,
  channels: Object.fromEntries(Object.entries(channels).map(([name, channel]) => [name, channelOf(channel)])),
  operations: Object.fromEntries(
    Object.entries(channels).map(([name, channel]) => [`send_${name}`, operationOf(name, channel)]),
  ),
  components: {
    schemas,
    messages,
    securitySchemes: { bearer },
  },
}

/** The document under a version of the contract. All versions so far have the same facts. */
export const asyncApiOf = (version: Version): JsonObject => ({ ...document, info: { ...document.info, version } })

const readAsyncApi = route({
  method: 'GET',
  path: '/asyncapi.json',
  operationId: 'read_asyncapi',
  summary: 'Read the contract of the published facts (AsyncAPI): topics, messages, guarantees',
  tag: 'Contract',
  scope: 'none',
  responses: { 200: { description: 'The AsyncAPI 3.0 document.', schema: z.record(z.string(), z.unknown()) } },
  handler: async ({ apiVersion }) => ({
    status: 200,
    body: asyncApiOf(apiVersion),
    headers: { 'Cache-Control': 'public, max-age=300', Vary: 'API-Version' },
  }),
})

export const asyncApiRoutes: readonly AnyRoute[] = [readAsyncApi]
