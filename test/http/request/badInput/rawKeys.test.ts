import { expect } from 'chai'
import { openEventStore } from '../../../../src/adapters/eventstoredb/eventStore.ts'
import type { EventStore } from '../../../../src/ports.ts'
import { anOrder, newKey } from '../../../support/client.ts'
import { sharedService, type TestService, writtenSince } from '../../../support/service.ts'
import { exchange } from '../../../support/rawHttp.ts'

/** Keys that no client library would send, as bytes over a socket. */

const TENANT = 'bad-input-raw-keys'
const ORDER = JSON.stringify(anOrder())
const BAD = '400 bad_request_framing'
const NO_KEY = '400 idempotency_key_invalid'
const TAB = 0x09

const controls = [...Array.from({ length: 0x20 }, (_, code) => code), 0x7f].filter(code => code !== TAB)
const hex = (code: number): string => `0x${code.toString(16).padStart(2, '0')}`

type Row = readonly [name: string, line: string, refusal: string]
const rows: readonly Row[] = [
  ...controls.map((code): Row => [`${hex(code)} within`, `a${String.fromCharCode(code)}b`, BAD]),
  ...[0x00, 0x0a, 0x0d, 0x1b, 0x7f].map(
    (code): Row => [`${hex(code)} in quotes`, `"a${String.fromCharCode(code)}b"`, BAD],
  ),
  ['a header behind a line feed', 'a\nX-Tenant: other', BAD],
  ['a line that is folded', 'a\r\n b', BAD],
  ['a line that is folded in quotes', '"a\r\n b"', BAD],
  ['a second line', 'a\r\nIdempotency-Key: b', NO_KEY],
  ['a second line in another case', 'a\r\nidempotency-key: a', NO_KEY],
  ['white space only', ' \t ', NO_KEY],
  ['a tab within', 'a\tb', NO_KEY],
  ['a byte above ASCII', 'a\xff', NO_KEY],
]

describe('bad input: idempotency keys as raw bytes', () => {
  let service: TestService
  let store: EventStore
  let token: string
  let position: bigint
  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: TENANT })
    store = openEventStore({ connectionString: service.addresses.event_store })
    position = await store.head()
  })
  after(() => store.close())

  const codeOf = async (line: string): Promise<string> => {
    const head = [
      'POST /orders HTTP/1.1',
      `Host: ${new URL(service.api).host}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${ORDER.length}`,
      `Idempotency-Key:${line}`,
    ]
    const { answers } = await exchange(service.api, `${head.join('\r\n')}\r\n\r\n${ORDER}`, { answers: 1 })
    expect(answers).to.have.length(1)
    return answers.map(({ status, body }) => (status < 400 ? `${status}` : `${status} ${body.code}`)).join()
  }

  for (const [name, line, refusal] of rows)
    it(`${refusal}: ${name}`, async () => expect(await codeOf(line)).to.equal(refusal))
  it('appends no event', async () => expect(await writtenSince(store, position, TENANT)).to.deep.equal([]))
  it('201: white space around a key, or none before it', async () => {
    for (const line of [newKey(), ` \t ${newKey()} \t `, `"${newKey()}"\t`]) expect(await codeOf(line)).to.equal('201')
  })
})
