import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createCursors } from '../../../../src/http/reading/cursor.ts'
import type { Answer } from '../../../support/client.ts'
import { send } from '../../../support/rawHttp.ts'
import { type BadInputFixtures, type Case, refusesAll, type Refusal, acceptsAll } from './cases.ts'
import { type CursorFixtures, type Name, NAMES, pathOf, prepareCursors, TENANT } from './cursorFixtures.ts'

/** Cursors are encrypted, bound to tenant, route and filters, and valid for three days. */

let fixtures: CursorFixtures
const prepare = async (given: BadInputFixtures): Promise<void> => {
  fixtures = await prepareCursors(given)
}

const DAY_MS = 24 * 60 * 60 * 1_000
const MINUTE_MS = 60 * 1_000

const INVALID: Refusal = [400, 'cursor_invalid']
const EXPIRED: Refusal = [400, 'cursor_expired']
const UNFIT: Refusal = [400, 'validation_failed']
const UNKNOWN: Refusal = [400, 'unknown_parameter']

/** Flips one bit; a negative index counts from the end. */
const flipped =
  (at: number, bit = 0) =>
  (cursor: string): string => {
    const bytes = Buffer.from(cursor, 'base64url')
    const index = at < 0 ? bytes.length + at : at
    bytes[index] = (bytes[index] ?? 0) ^ (1 << bit)
    return bytes.toString('base64url')
  }
const recoded =
  (encoding: BufferEncoding) =>
  (cursor: string): string =>
    Buffer.from(cursor, 'base64url').toString(encoding)
const swapped = (cursor: string): string =>
  cursor.replaceAll(/[a-z]/gi, letter => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))

type Change = (cursor: string) => string

/** Modified cursors, which no list accepts. */
const BROKEN: Readonly<Record<string, Change>> = {
  'without its last character': cursor => cursor.slice(0, -1),
  'without its last four characters': cursor => cursor.slice(0, -4),
  'without its first character': cursor => cursor.slice(1),
  'without its first four characters': cursor => cursor.slice(4),
  'its first half': cursor => cursor.slice(0, cursor.length / 2),
  'its second half': cursor => cursor.slice(cursor.length / 2),
  'its first character': cursor => cursor.slice(0, 1),
  'its nonce alone': cursor => cursor.slice(0, 16),
  'its nonce and its tag, without a text': cursor =>
    Buffer.concat([Buffer.from(cursor, 'base64url').subarray(0, 12), Buffer.alloc(16)]).toString('base64url'),
  'with a character in its middle left out': cursor => cursor.slice(0, 40) + cursor.slice(41),
  'with one character more': cursor => `${cursor}A`,
  'with four characters more': cursor => `${cursor}AAAA`,
  'with four characters before it': cursor => `AAAA${cursor}`,
  'twice in one': cursor => cursor + cursor,
  backwards: cursor => cursor.split('').toReversed().join(''),
  'in lower case': cursor => cursor.toLowerCase(),
  'in upper case': cursor => cursor.toUpperCase(),
  'in the other case': swapped,
  'a bit turned at the start of the nonce': flipped(0),
  'a bit turned at the end of the nonce': flipped(11, 7),
  'a bit turned at the start of the text': flipped(12),
  'a bit turned further on in the text': flipped(20, 5),
  'a bit turned in the middle of the text': flipped(30, 3),
  'a bit turned at the end of the text': flipped(-17),
  'a bit turned at the start of the tag': flipped(-16),
  'a bit turned in the middle of the tag': flipped(-8, 4),
  'a bit turned at the end of the tag': flipped(-1, 7),
  'a byte of zero behind it': cursor =>
    Buffer.concat([Buffer.from(cursor, 'base64url'), Buffer.alloc(1)]).toString('base64url'),
  'its last 16 bytes as zeros': cursor =>
    Buffer.concat([Buffer.from(cursor, 'base64url').subarray(0, -16), Buffer.alloc(16)]).toString('base64url'),
  'in the other alphabet of base 64': recoded('base64'),
  'with + for -': cursor => cursor.replaceAll('-', '+'),
  'with / for _': cursor => cursor.replaceAll('_', '/'),
  'with one sign of padding': cursor => `${cursor}=`,
  'with two signs of padding': cursor => `${cursor}==`,
  'in hexadecimal': recoded('hex'),
  'its bytes as Latin-1': recoded('latin1'),
  'in base 64 once more': cursor => Buffer.from(cursor).toString('base64url'),
  'a space before it': cursor => ` ${cursor}`,
  'a space behind it': cursor => `${cursor} `,
  'a space within': cursor => `${cursor.slice(0, 30)} ${cursor.slice(30)}`,
  'a line feed behind it': cursor => `${cursor}\n`,
  'a line folded within': cursor => `${cursor.slice(0, 60)}\r\n${cursor.slice(60)}`,
  'a tab before it': cursor => `\t${cursor}`,
  'U+0000 behind it': cursor => `${cursor}\u0000`,
  'a zero-width space behind it': cursor => `${cursor}\u200b`,
  'a byte order mark before it': cursor => `\ufeff${cursor}`,
  'in quotes': cursor => `"${cursor}"`,
  'in angle brackets': cursor => `<${cursor}>`,
  'a comma and itself': cursor => `${cursor},${cursor}`,
  'a point behind it': cursor => `${cursor}.`,
  'percent-encoded twice': cursor => cursor.replaceAll('-', '%2D').replaceAll('_', '%5F'),
  'its hyphens as dashes': cursor => cursor.replaceAll('-', '–'),
  'its letters in full width': cursor =>
    cursor.replaceAll(/[A-Z]/g, letter => String.fromCodePoint(letter.charCodeAt(0) + 0xfee0)),
}

/** Texts that the service never issued as cursors. */
const NEVER_ISSUED: Readonly<Record<string, string>> = {
  null: 'null',
  undefined: 'undefined',
  zero: '0',
  'an offset': '25',
  'a number below zero': '-1',
  'an object': '{}',
  'an object, in base 64': Buffer.from('{"after":"0"}').toString('base64url'),
  'a key, in base 64': Buffer.from('{"created_at":"2100-01-01T00:00:00Z","id":"x"}').toString('base64url'),
  'an id': 'ord_00000000000000000000000000',
  'a time': '2026-01-01T00:00:00Z',
  'a token': 'eyJhbGciOiJub25lIn0.e30.',
  'an encrypted token (JWE)': 'eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAAAAAAAAAAAAAA.AAAA.AAAA',
  'a statement': "' or 1=1; --",
  'a path': '../../etc/passwd',
  'a star': '*',
  'one letter': 'A',
  'four letters': 'AAAA',
  '1,024 letters': 'A'.repeat(1_024),
  hyphens: '-'.repeat(64),
  underscores: '_'.repeat(64),
  'random bytes': randomBytes(90).toString('base64url'),
  'text beyond Latin-1': '🂡🂡🂡',
}

const askWith =
  (name: Name, parameter: () => string, filter?: string) =>
  ({ client }: BadInputFixtures): Promise<Answer> => {
    const list = fixtures.lists[name]
    return client.get(pathOf(list, filter ?? list.filter, parameter()))
  }
const withCursor = (name: Name, cursor: () => string, filter?: string) =>
  askWith(name, () => `cursor=${encodeURIComponent(cursor())}`, filter)
const own = (name: Name) => (): string => fixtures.cursors[name]

const broken: readonly Case[] = NAMES.flatMap(name =>
  Object.entries(BROKEN).map(([how, change]) => ({
    name: `${name}: ${how}`,
    refusal: INVALID,
    send: ({ client }: BadInputFixtures): Promise<Answer> => {
      const changed = change(fixtures.cursors[name])
      expect(changed, 'the changed cursor').not.to.equal(fixtures.cursors[name])
      return withCursor(name, () => changed)({ client } as BadInputFixtures)
    },
  })),
)

const neverIssued: readonly Case[] = NAMES.flatMap(name =>
  Object.entries(NEVER_ISSUED).map(([what, text]) => ({
    name: `${name}: ${what}`,
    refusal: INVALID,
    send: withCursor(name, () => text),
  })),
)

const ofOtherLists: readonly Case[] = NAMES.flatMap(name => [
  ...NAMES.filter(other => other !== name).map(other => ({
    name: `${name}: the cursor of ${other}`,
    refusal: INVALID,
    send: withCursor(name, own(other)),
  })),
  {
    name: `${name}: the cursor of another tenant's orders`,
    refusal: INVALID,
    send: withCursor(name, () => fixtures.ofOtherTenant),
  },
])

const FILTERED: readonly Name[] = ['orders', 'invoices', 'payments', 'operations', 'events', 'audit-records']
const DIFFERENT = ['another value of its filter', 'one filter more', 'another filter']
const filters: readonly Case[] = FILTERED.flatMap(name => [
  { name: `${name}: without its filter`, refusal: INVALID, send: withCursor(name, own(name), '') },
  ...DIFFERENT.map((what, index) => ({
    name: `${name}: with ${what}`,
    refusal: INVALID,
    send: (given: BadInputFixtures) => {
      const other = fixtures.lists[name].others[index]
      if (other === undefined) throw new Error(`There is no ${what} for ${name}.`)
      return withCursor(name, own(name), other)(given)
    },
  })),
])

const secrets: readonly Case[] = NAMES.flatMap(name => [
  {
    name: `${name}: sealed with another secret`,
    refusal: INVALID,
    send: withCursor(name, () => fixtures.sealed(name, 0, randomBytes(32))),
  },
  {
    name: `${name}: sealed with no secret`,
    refusal: INVALID,
    send: withCursor(name, () => fixtures.sealed(name, 0, new Uint8Array())),
  },
  {
    name: `${name}: three days and a minute old`,
    refusal: EXPIRED,
    send: withCursor(name, () => fixtures.sealed(name, 3 * DAY_MS + MINUTE_MS)),
  },
  {
    name: `${name}: a year old`,
    refusal: EXPIRED,
    send: withCursor(name, () => fixtures.sealed(name, 365 * DAY_MS)),
  },
  {
    name: `${name}: a year old, and sealed with another secret`,
    refusal: INVALID,
    send: withCursor(name, () => fixtures.sealed(name, 365 * DAY_MS, randomBytes(32))),
  },
])

/** Malformed forms of the query parameter. */
const malformed: readonly Case[] = NAMES.flatMap(name => {
  const as = (how: string, refusal: Refusal, parameter: () => string): Case => ({
    name: `${name}: ${how}`,
    refusal,
    send: askWith(name, parameter),
  })
  const cursor = own(name)
  return [
    as('an empty value', UNFIT, () => 'cursor='),
    as('no value and no equals sign', UNFIT, () => 'cursor'),
    as('1,025 letters', UNFIT, () => `cursor=${'A'.repeat(1_025)}`),
    as('8,000 letters', UNFIT, () => `cursor=${'A'.repeat(8_000)}`),
    as('9,000 letters', [414, 'uri_too_long'], () => `cursor=${'A'.repeat(9_000)}`),
    as('the same twice', UNKNOWN, () => `cursor=${cursor()}&cursor=${cursor()}`),
    as('right, then wrong', UNKNOWN, () => `cursor=${cursor()}&cursor=x`),
    as('right, then an empty one', UNKNOWN, () => `cursor=${cursor()}&cursor=`),
    as('twice, once with an encoded name', UNKNOWN, () => `cursor=${cursor()}&%63ursor=${cursor()}`),
    as('in capitals', UNKNOWN, () => `CURSOR=${cursor()}`),
    as('as an array', UNKNOWN, () => `cursor[]=${cursor()}`),
    as('as an object', UNKNOWN, () => `cursor[after]=${cursor()}`),
    as('with a space behind the name', UNKNOWN, () => `cursor%20=${cursor()}`),
    as('by another name', UNKNOWN, () => `page_token=${cursor()}`),
    as('with an order of its own', UNKNOWN, () => `cursor=${cursor()}&sort=created_at`),
    as('with a semicolon and another', INVALID, () => `cursor=${cursor()};cursor=${cursor()}`),
    as('with pluses for spaces', INVALID, () => `cursor=+${cursor()}+`),
    as('encoded in a way that decodes to nothing', INVALID, () => `cursor=${cursor()}%C0%AF`),
    as('with half an encoded character', INVALID, () => `cursor=${cursor()}%4`),
  ]
})

/** Last-Event-ID of an event stream is a cursor too. */
const streamed: readonly Case[] = Object.entries(BROKEN).flatMap(([how, change]) => {
  const cursor = (): string => change(fixtures.cursors.events)
  const isHeader = !/feed|folded|U\+0000|space|tab|zero-width|mark|dashes|width|Latin/.test(how)
  return isHeader
    ? [
        {
          name: `Last-Event-ID: ${how}`,
          refusal: INVALID,
          send: ({ client }: BadInputFixtures) =>
            client.get('/events?type=order.created', { accept: 'text/event-stream', 'last-event-id': cursor() }),
        },
      ]
    : []
})

const OTHERS: Readonly<Record<string, (cursor: string) => readonly [string, string][]>> = {
  'Last-Event-ID in two lines': cursor => [
    ['Last-Event-ID', cursor],
    ['Last-Event-ID', cursor],
  ],
  'an empty Last-Event-ID': () => [['Last-Event-ID', '']],
}
const headers: readonly Case[] = Object.entries(OTHERS).map(([name, lines]) => ({
  name,
  refusal: INVALID,
  send: ({ service }: BadInputFixtures) =>
    send(service.api, {
      method: 'GET',
      path: '/events?type=order.created',
      headers: [
        ['Authorization', `Bearer ${fixtures.token}`],
        ['Accept', 'text/event-stream'],
        ...lines(fixtures.cursors.events),
      ],
    }),
}))

const otherTenants: readonly Case[] = NAMES.map(name => ({
  name: `${name}: used by a caller of another tenant`,
  refusal: name.startsWith('history') ? [404, 'resource_not_found'] : INVALID,
  send: () => {
    const list = fixtures.lists[name]
    return fixtures.other.get(pathOf(list, list.filter, `cursor=${fixtures.cursors[name]}`))
  },
}))

refusesAll(
  { set: 'cursors', tenant: TENANT, least: 700 },
  [
    ...[...broken, ...neverIssued, ...ofOtherLists, ...filters],
    ...[...secrets, ...malformed, ...streamed, ...headers, ...otherTenants],
  ],
  prepare,
)

const encodedWhole = (text: string): string => Buffer.from(text).toString('hex').replaceAll(/../g, '%$&')

acceptsAll(
  { set: 'cursors', tenant: TENANT },
  NAMES.flatMap(name => {
    const cursor = own(name)
    const accepted = (how: string, parameter: () => string) => ({
      name: `${name}: ${how}`,
      status: 200,
      send: askWith(name, parameter),
    })
    return [
      accepted('as it was issued', () => `cursor=${cursor()}`),
      accepted('with another limit', () => `cursor=${cursor()}&limit=100`),
      accepted('before its filters', () => `limit=2&cursor=${cursor()}`),
      accepted('with an encoded name', () => `%63ursor=${cursor()}`),
      accepted('with every character encoded', () => `cursor=${encodedWhole(cursor())}`),
      accepted('sealed as the service seals', () => `cursor=${fixtures.sealed(name, 0)}`),
      accepted('three days old, less a minute', () => `cursor=${fixtures.sealed(name, 3 * DAY_MS - MINUTE_MS)}`),
      accepted('with an empty parameter list behind it', () => `cursor=${cursor()}&`),
    ]
  }),
  prepare,
)

describe('a cursor', () => {
  const SECRET = randomBytes(32)
  const binding = { tenant: 'a', path: '/orders', filters: {} }

  it('is valid until its last millisecond', () => {
    let now = 1_000
    const cursors = createCursors(SECRET, () => now)
    const cursor = cursors.encrypt(binding, { after: 'x' })
    now += 3 * DAY_MS
    expect(cursors.open(binding, cursor)).to.deep.equal({ after: 'x' })
    now++
    expect(() => cursors.open(binding, cursor))
      .to.throw()
      .with.property('code', 'cursor_expired')
  })

  it('differs each time, and does not reveal its content', () => {
    const cursors = createCursors(SECRET, Date.now)
    const sealed = new Set(Array.from({ length: 200 }, () => cursors.encrypt(binding, { after: 'visible' })))
    expect(sealed.size).to.equal(200)
    for (const cursor of sealed) {
      expect(cursor).to.match(/^[\w-]+$/)
      expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.to.include('visible')
    }
  })

  it('is refused with any one bit flipped', () => {
    const cursors = createCursors(SECRET, Date.now)
    const cursor = cursors.encrypt(binding, { after: 'x' })
    const { length } = Buffer.from(cursor, 'base64url')
    for (let at = 0; at < length; at++)
      for (let bit = 0; bit < 8; bit++)
        expect(() => cursors.open(binding, flipped(at, bit)(cursor)), `${at}.${bit}`)
          .to.throw()
          .with.property('code', 'cursor_invalid')
  })
})
