import { isSame, type Json, type JsonObject, namesOf, objectAt, resolved, textOf, type Documents } from './documents.ts'
import type { Finding, Rule } from './rules.ts'
import { compareSchemas } from './schemas.ts'
import { compareSecuritySchemes } from './terms.ts'

const finding = (where: string, path: string, rule: Rule, change: string): Finding => ({ rule, where, path, change })

const changed = (
  where: string,
  rule: Rule,
  name: string,
  [was, now]: readonly [Json | undefined, Json | undefined],
): Finding[] =>
  isSame(was, now) ? [] : [finding(where, '', rule, `${name} was ${textOf(was)} and is ${textOf(now)}.`)]

export const compareChannels = (documents: Documents): readonly Finding[] => {
  const [was, now] = [objectAt(documents.was, 'channels'), objectAt(documents.now, 'channels')]
  return namesOf(was, now).flatMap((name): readonly Finding[] => {
    const where = `channel ${textOf(objectAt(was, name)['address'] ?? objectAt(now, name)['address'])}`
    if (!(name in now)) return [finding(where, '', 'channel-removed', 'The channel is removed.')]
    if (!(name in was)) return [finding(where, '', 'channel-added', 'The channel is added.')]
    const pair = { was: objectAt(was, name), now: objectAt(now, name) }
    return [...compareChannel(where, pair.was, pair.now), ...compareMessages(where, pair, documents)]
  })
}

const RETENTION = ['bindings', 'kafka', 'topicConfiguration'] as const

const compareChannel = (where: string, was: JsonObject, now: JsonObject): readonly Finding[] => {
  const partitions = (channel: JsonObject) => objectAt(channel, 'bindings', 'kafka')['partitions']
  const [before, after] = [objectAt(was, ...RETENTION), objectAt(now, ...RETENTION)]
  const retention = [Number(before['retention.ms'] ?? Infinity), Number(after['retention.ms'] ?? Infinity)] as const
  return [
    ...changed(where, 'channel-changed', 'The address', [was['address'], now['address']]),
    ...changed(where, 'channel-changed', 'servers', [was['servers'], now['servers']]),
    ...changed(where, 'partitions-changed', 'The number of partitions', [partitions(was), partitions(now)]),
    ...changed(where, 'delivery-changed', 'x-delivery', [was['x-delivery'], now['x-delivery']]),
    ...changed(where, 'retention-narrowed', 'cleanup.policy', [before['cleanup.policy'], after['cleanup.policy']]),
    ...(retention[1] < retention[0]
      ? changed(where, 'retention-narrowed', 'retention.ms', [before['retention.ms'], after['retention.ms']])
      : changed(where, 'limit-widened', 'retention.ms', [before['retention.ms'], after['retention.ms']])),
  ]
}

const compareMessages = (where: string, { was, now }: Documents, documents: Documents): readonly Finding[] => {
  const [before, after] = [objectAt(was, 'messages'), objectAt(now, 'messages')]
  return namesOf(before, after).flatMap((name): readonly Finding[] => {
    if (!(name in after)) return [finding(where, name, 'message-removed', `The message ${name} is removed.`)]
    if (!(name in before)) return [finding(where, name, 'message-added', `The message ${name} is added.`)]
    const message = { was: resolved(documents.was, before[name]), now: resolved(documents.now, after[name]) }
    return compareMessage(`${where}, message ${name}`, message, documents)
  })
}

const compareMessage = (where: string, { was, now }: Documents, documents: Documents): readonly Finding[] => {
  const part = (name: string) =>
    compareSchemas({ was: was[name], now: now[name], direction: 'event', where, path: '', documents })
  const key = (message: JsonObject) => {
    const { description: _, ...schema } = objectAt(message, 'bindings', 'kafka', 'key')
    return schema
  }
  return [
    ...changed(where, 'media-type-removed', 'contentType', [was['contentType'], now['contentType']]),
    ...changed(where, 'message-key-changed', 'The key', [key(was), key(now)]),
    ...changed(where, 'message-removed', 'The name', [was['name'], now['name']]),
    ...part('headers'),
    ...part('payload'),
  ]
}

/** Every address of a schema stays, also of one that no message refers to any more. */
const compareAddresses = ({ was, now }: Documents): readonly Finding[] => {
  const addresses = (document: JsonObject): readonly string[] =>
    Object.values(objectAt(document, 'components', 'schemas'))
      .map(schema => objectAt(schema)['x-published-at'])
      .filter(address => typeof address === 'string')
  return addresses(was)
    .filter(address => !addresses(now).includes(address))
    .map(address => finding('schemas', address, 'schema-removed', `${address} is removed.`))
}

export const compareAsyncApi = (documents: Documents): readonly Finding[] => [
  ...compareChannels(documents),
  ...compareAddresses(documents),
  ...compareSecuritySchemes(
    objectAt(documents.was, 'components', 'securitySchemes'),
    objectAt(documents.now, 'components', 'securitySchemes'),
  ),
  ...changed('the facts', 'media-type-removed', 'defaultContentType', [
    documents.was['defaultContentType'],
    documents.now['defaultContentType'],
  ]),
]
