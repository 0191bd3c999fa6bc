import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { checkKafkaMessage, checkServerSentEvent } from './asyncapiCheck.ts'
import { eventIn, type Message } from './factSchemaCheck.ts'

const folder = new URL('../golden-facts/invoice.paid.v1/', import.meta.url)
const message = JSON.parse(readFileSync(new URL('InvoicePaid.v1.message.json', folder), 'utf8')) as Message
const event = eventIn(message)

describe('the check of messages against asyncapi.json', () => {
  it('accepts a published message on its topics, and as a server-sent event', () => {
    checkKafkaMessage('ledger.invoice.v1', message)
    checkKafkaMessage('ledger.subscription.sub_01JB3N8Q6Z4T1V7W9XAC2E5GHK', message)
    checkServerSentEvent(event)
  })

  it('rejects a message that its topic does not have', () => {
    expect(() => checkKafkaMessage('ledger.payment.v1', message)).to.throw('no message invoice.paid.v1')
    expect(() => checkKafkaMessage('ledger.other.v1', message)).to.throw('no message invoice.paid.v1')
  })

  it('rejects a missing header, another value and another type', () => {
    const { ce_sequence: _, ...headers } = message.headers
    expect(() => checkKafkaMessage('ledger.invoice.v1', { ...message, headers })).to.throw('ce_sequence')
    expect(() => checkKafkaMessage('ledger.invoice.v1', { ...message, value: '{}' })).to.throw('required property')
    expect(() => checkServerSentEvent({ ...event, data: {} } as never)).to.throw('required property')
  })

  it('rejects a dead letter without its reason in the payload', () => {
    const headers = { ...message.headers, dead_letter_reason: 'too large', dead_letter_attempts: '10' }
    const check = (value: string) => () =>
      checkKafkaMessage('ledger.subscription.sub_01JB3N8Q6Z4T1V7W9XAC2E5GHK.dlq', { ...message, headers, value })
    expect(check('{}')).to.throw('reason')
  })
})
