import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { asyncApiOf } from '../../src/http/contract/asyncapi.ts'
import { OLDEST_VERSION } from '../../src/http/index.ts'
import type { JsonObject } from '../../src/ports.ts'

/** Checks every message of a test, in Kafka or as a server-sent event, against its channel in asyncapi.json. */

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormatsModule.default(ajv)
const document = asyncApiOf(OLDEST_VERSION)
ajv.addSchema({ ...document, $id: 'asyncapi' })

type Channel = { readonly address: string; readonly messages: Readonly<Record<string, { readonly $ref: string }>> }
const channels = Object.values(document['channels'] as Readonly<Record<string, Channel>>).map(channel => ({
  ...channel,
  matches: new RegExp(`^${RegExp.escape(channel.address).replaceAll(/\\\{\w+\\\}/g, '[^.]+')}$`),
}))

const DEAD_LETTER = 'dead-letter'

/** `https://ledger.example/schemas/order.created.v1.json` → `order.created.v1` */
const nameIn = (dataschema: string): string => /\/schemas\/(.+)\.json$/.exec(dataschema)?.[1] ?? dataschema

const check = (subject: string, reference: string, value: unknown): void => {
  const validate = ajv.getSchema(encodeURI(reference))
  if (validate === undefined) throw new Error(`${subject}: asyncapi.json has no schema at ${reference}.`)
  if (validate(value) !== true)
    throw new Error(
      `${subject} is not as asyncapi.json says: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`,
    )
}

/** Throws if the channel does not have this message. Returns the place of the message in the document. */
const messageAt = (address: string, name: string): string => {
  const channel = channels.find(({ matches }) => matches.test(address))
  const message = channel?.messages[name]
  if (message === undefined) throw new Error(`asyncapi.json has no message ${name} in ${address}.`)
  return `asyncapi${message.$ref}`
}

type KafkaMessage = { readonly headers: Readonly<Record<string, string>>; readonly value: string }

export const checkKafkaMessage = (topic: string, { headers, value }: KafkaMessage): void => {
  const name = 'dead_letter_reason' in headers ? DEAD_LETTER : nameIn(headers['ce_dataschema'] ?? '')
  const place = messageAt(topic, name)
  check(`The headers of ${name} in ${topic}`, `${place}/headers`, headers)
  check(`The message ${name} in ${topic}`, `${place}/payload`, JSON.parse(value) as JsonObject)
}

export const checkServerSentEvent = (event: { readonly dataschema: string }): void => {
  const name = nameIn(event.dataschema)
  check(`The event ${name}`, `${messageAt('/events', name)}/payload`, event)
}
