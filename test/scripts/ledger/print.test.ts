import { readFileSync, readdirSync } from 'node:fs'
import { expect } from 'chai'
import { escaped } from '../../../scripts/ledger/print.ts'
import { aligned } from '../../../scripts/ledger/table.ts'
import { clientOf } from '../../support/client.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { ledger, tidyUp } from './fixtures.ts'

/** Control sequences for color, window title, clear screen, carriage return, C1, and change of writing direction. */
const HOSTILE = 'x\u001b[31m\u001b]0;title\u0007\u001b[2J\rpaid\u009b1m\u202eevil\u2028y'
const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

describe('npm run ledger: untrusted texts on a terminal', () => {
  let service: TestService
  before(async () => {
    service = await sharedService()
  })
  after(tidyUp)

  it('are shown with escapes, and aligned by their escaped width', () => {
    expect(escaped('naïve 日本 👍')).to.equal('naïve 日本 👍')
    expect(escaped('a\u001b[31m\nb\u202e')).to.equal('a\\u001b[31m\\u000ab\\u202e')
    expect(
      aligned([
        ['a\n', 'x'],
        ['b', 'y'],
      ]),
    ).to.deep.equal(['a\\u000a  x', 'b        y'])
  })

  it('have no control characters in a list, in JSON or in an error', async () => {
    const tenant = 'hostile-names'
    const client = clientOf(service.api, await service.token({ tenant }))
    const name = '\u0085\u009b31m\u202e key'
    const made = await client.post('/api-keys', { name, scopes: ['orders:read'] })
    expect(made.status, made.text).to.equal(201)
    await client.get('/api-keys', { 'if-min-position': made.headers.get('ledger-position') ?? '', prefer: 'wait=10' })
    const outputs = [
      await ledger(['keys', 'list', '--tenant', tenant]),
      await ledger(['keys', 'list', '--tenant', tenant, '--json']),
      await ledger(['keys', 'revoke', HOSTILE, '--tenant', tenant]),
      await ledger(['streams', 'show', HOSTILE]),
      await ledger(['streams', 'show', made.body.id]),
    ]
    for (const { stdout, stderr } of outputs) expect(`${stdout}${stderr}`).to.not.match(CONTROLS)
    expect(outputs[0]?.stdout).to.include('\\u009b31m\\u202e key')
    expect(JSON.parse(outputs[1]?.stdout ?? '').items[0].name).to.equal(name)
  })

  it('are printed by one file only', () => {
    const root = new URL('../../../scripts/ledger/', import.meta.url)
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.ts'))
    const writers = files.filter(file =>
      /process\.(stdout|stderr)\.write|console\./.test(readFileSync(new URL(file, root), 'utf8')),
    )
    expect(writers).to.deep.equal(['print.ts'])
  })
})
