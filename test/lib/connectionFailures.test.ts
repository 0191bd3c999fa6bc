import { expect } from 'chai'
import { connectionFailureOf, PART_SETTINGS } from '../../src/lib/connectionFailures.ts'

const coded = (message: string, code = '', cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code })

/** By the error: its kind, its cause, and a part of the remedy. */
const CASES: readonly (readonly [unknown, string, string, string])[] = [
  [
    coded("Hostname/IP does not match certificate's altnames: IP: 127.0.0.1 is not in the cert's list: ", 'X'),
    ...(['certificate', 'its certificate is not for 127.0.0.1', 'in DATABASE_URL'] as const),
  ],
  [
    new Error(
      "14 UNAVAILABLE: (caused by: Hostname/IP does not match certificate's altnames: Host: db. is not in the cert's altnames: DNS:a.example, IP Address:10.0.0.7)",
    ),
    ...(['certificate', 'its certificate is for a.example, 10.0.0.7, not for db', 'have one issued'] as const),
  ],
  [
    coded('no', '', coded('certificate is not yet valid')),
    'certificate',
    'its certificate is not valid yet',
    'the clock',
  ],
  [
    new AggregateError([coded('connect ECONNREFUSED ::1:5432', 'ECONNREFUSED'), coded('another')]),
    ...(['unreachable', 'the connection was refused (ECONNREFUSED)', 'Start it, or correct DATABASE_URL.'] as const),
  ],
  [coded('getaddrinfo', 'ENOTFOUND'), 'unreachable', 'there is no such host (ENOTFOUND)', 'correct DATABASE_URL'],
  [
    coded('no pg_hba.conf entry for x', '28000'),
    'login',
    'no pg_hba.conf entry for x',
    'Permit the user at the server',
  ],
  [coded('database "x" does not exist', '3D000'), 'login', 'database "x" does not exist', 'Create it'],
  [coded('wrapped', '', coded('the disk is full', '53100')), 'other', 'the disk is full', 'Start it'],
  [coded('13 INTERNAL: a bug'), 'other', 'a bug', 'Start it'],
  [coded('14 UNAVAILABLE: No connection (caused by: read ECONNRESET)'), 'other', 'read ECONNRESET', 'Start it'],
  ['a text', 'other', 'a text', 'Start it'],
]

describe('the failure of a connection', () => {
  for (const [error, kind, cause, remedy] of CASES)
    it(`has the cause: ${cause}`, () => {
      const failure = connectionFailureOf(error, PART_SETTINGS.database)
      expect([failure.kind, failure.cause]).to.deep.equal([kind, cause])
      expect(failure.remedy)
        .to.match(/^[A-Z].*\.$/)
        .and.to.include(remedy)
    })
})
