import { expect } from 'chai'
import { anOrder, type Answer } from '../../../support/client.ts'
import { sharedService, type TestService } from '../../../support/service.ts'
import { send } from '../../../support/rawHttp.ts'

/** Malformed values of X-Correlation-ID are replaced by a new id and never echoed in a response. */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const SUFFIX = '00000000000000000000000000'
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

/** The header lines. Random ids never contain `QUQUQ`: their alphabet has no U. The response must not contain it either. */
const REPLACED: Readonly<Record<string, readonly string[]>> = {
  'seven characters': ['QUQUQ67'],
  'one character too many': ['QUQUQ'.padEnd(129, 'x')],
  'thousands of characters': ['QUQUQ'.padEnd(4_000, 'x')],
  'an empty value': [''],
  'a space within': ['QUQUQ 45678'],
  'a tab within': ['QUQUQ\t45678'],
  'a colon': ['QUQUQ:45678'],
  'a slash': ['QUQUQ/45678'],
  'a backslash': ['QUQUQ\\45678'],
  'a plus': ['QUQUQ+45678'],
  'an equals sign': ['QUQUQ45678=='],
  'a tilde': ['QUQUQ~45678'],
  'quotes around it': ['"QUQUQ45678"'],
  'braces around it': ['{QUQUQ-4567-89ab}'],
  'a comma behind': ['QUQUQ45678,'],
  'a script': ['<script>QUQUQ</script>'],
  'an escaped line break': ['QUQUQ45678%0d%0aX-Evil:1'],
  'a JNDI lookup': [`\${jndi:ldap://QUQUQ}`],
  'brackets around it': ['[QUQUQ45678]'],
  'a statement of SQL': ["QUQUQ';drop table x;--"],
  'a path': ['../../QUQUQ/passwd'],
  'Latin-1': ['QUQUQ4567\xe9'],
  'a no-break space behind': ['QUQUQ45678\xa0'],
  'letters of another script': [utf8('QUQUQабвгд')],
  'full-width digits': [utf8('QUQUQ１２３４５')],
  'a zero-width space': [utf8('QUQUQ45\u200b678')],
  'two lines': ['QUQUQ45678', 'QUQUQ56789'],
  'two lines that are equal': ['QUQUQ45678', 'QUQUQ45678'],
  'two lines, one of them empty': ['', 'QUQUQ45678'],
}
const KEPT = ['12345678', 'x'.repeat(128), 'A.b_c-9.', '........', '--------', '________', '00000000']
const PADDED = ['  kept-45678', 'kept-45678\t ']

describe('bad input: correlation ids', () => {
  let service: TestService
  let token: string
  before(async () => {
    service = await sharedService()
    token = await service.token({ tenant: 'bad-input-correlation-ids' })
  })

  const ask = (method: string, path: string, lines: readonly string[], body?: string): Promise<Answer> =>
    send(service.api, {
      method,
      path,
      headers: [
        ['Authorization', `Bearer ${token}`],
        ['Content-Type', 'application/json'],
        ...lines.map(line => ['X-Correlation-ID', line] as const),
      ],
      ...(body === undefined ? {} : { body }),
    })
  const REQUESTS = [
    [200, 'GET', '/orders?limit=1'],
    [200, 'GET', '/livez'],
    [201, 'POST', '/orders', JSON.stringify(anOrder())],
    [404, 'GET', `/orders/ord_${SUFFIX}`],
    [404, 'GET', '/unknown'],
    [400, 'POST', '/orders', '{'],
  ] as const

  for (const [name, lines] of Object.entries(REPLACED))
    it(`are replaced in every response: ${name}`, async () => {
      const ids = new Set<string>()
      for (const [status, method, path, body] of REQUESTS) {
        const answer = await ask(method, path, lines, body)
        expect(answer.status, answer.text).to.equal(status)
        const id = answer.headers.get('x-correlation-id') ?? ''
        expect(id, path).to.match(UUID)
        if (status >= 400) expect(answer.body.correlation_id).to.equal(id)
        expect(`${answer.text}${JSON.stringify([...answer.headers])}`).not.to.include('QUQUQ')
        ids.add(id)
      }
      expect(ids.size).to.equal(REQUESTS.length)
    })
  for (const given of [...KEPT, ...PADDED])
    it(`are kept: ${JSON.stringify(given).slice(0, 30)}`, async () => {
      for (const [, method, path, body] of REQUESTS)
        expect((await ask(method, path, [given], body)).headers.get('x-correlation-id'), path).to.equal(given.trim())
    })
})
