import { randomUUID } from 'node:crypto'
import { metastreamOf } from './record.ts'
import type { WriteRequest } from './writeRequest.ts'

const TEN_DAYS_S = 864_000
const THIRTY_DAYS_S = 2_592_000
const ADMINS_WRITE = { $acl: { $w: '$admins', $d: '$admins', $mw: '$admins' } }

/** The position of the first event in a fresh log. The epoch record of the real server is before it. */
export const LOG_BEGINS = 167n

const METADATA: readonly (readonly [stream: string, metadata: object])[] = [
  ['$stats-127.0.0.1:2113', { $maxAge: TEN_DAYS_S }],
  ['$user-ops', ADMINS_WRITE],
  ['$user-admin', ADMINS_WRITE],
  ['$scavenges', { $maxAge: THIRTY_DAYS_S, $acl: { $r: '$ops', $w: [], $d: [], $mr: [], $mw: [] } }],
]

/** As a real server writes them at its first start: readers that take the first event for their own must fail here too. */
export const initialEvents = (): readonly WriteRequest[] =>
  METADATA.map(([stream, metadata]) => {
    const data = Buffer.from(JSON.stringify(metadata))
    const event = { id: randomUUID(), type: '$metadata', isJson: true, data, metadata: Buffer.alloc(0) }
    return {
      kind: 'append',
      stream: metastreamOf(stream),
      expected: 'no_stream',
      events: [event],
      bytes: data.length,
      deadlineMs: Number.POSITIVE_INFINITY,
    }
  })
