import { createHash, generateKeyPairSync } from 'node:crypto'
import { cp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { verifyFolder } from '../../../scripts/ledger/evidence/folder.ts'
import { progressFor } from '../../../scripts/ledger/progress.ts'
import { anOrder, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import { canonical, hashOfLeaf, type HeadLine, isSignedBy, naiveRoot } from '../../evidence/independent.ts'
import { emptyFolder, ledger, tidyUp } from './fixtures.ts'

const TENANT = 'auditors'
const ORDERS = 6

type Finding = { readonly kind: string; readonly detail: string; readonly place?: Record<string, unknown> }
type Verified = { readonly ok: boolean; readonly checks: readonly { check: string; findings: readonly Finding[] }[] }

const linesOf = async (path: string): Promise<string[]> =>
  (await readFile(path, 'utf8')).split('\n').filter(line => line !== '')

describe('ledger export --evidence and ledger verify <folder>', () => {
  let service: TestService
  let whole: string
  let ofTenant: string
  /** A copy of the file of heads from before the export. */
  let headsBefore: string
  /** The file of the key of the service. */
  let ownKey: string
  const orders: string[] = []
  let apiKey: string

  const exported = async (...args: readonly string[]): Promise<string> => {
    const out = join(await emptyFolder(), 'evidence')
    const { code, stderr } = await ledger(['export', '--evidence', '--out', out, ...args])
    expect(code, stderr).to.equal(0)
    return out
  }
  /** Whether a head has signed the last order. */
  const isSealed = async (position: bigint): Promise<boolean> =>
    (await linesOf(join(service.dataDir, 'evidence', 'heads.jsonl')).catch(() => []))
      .map(line => JSON.parse(line) as HeadLine)
      .some(head => BigInt(head.position) >= position)

  before(async () => {
    service = await sharedService()
    const client = clientOf(service.api, await service.token({ tenant: TENANT }))
    apiKey = (await client.post('/api-keys', { name: 'nightly', scopes: ['orders:read'] })).body.id
    let position = 0n
    for (let n = 0; n < ORDERS; n += 1) {
      const created = await client.post('/orders', anOrder(900 + n))
      orders.push(created.body.id)
      position = BigInt(created.headers.get('ledger-position') ?? 0)
    }
    await eventually(() => isSealed(position))
    headsBefore = join(await emptyFolder(), 'heads-before.jsonl')
    await cp(join(service.dataDir, 'evidence', 'heads.jsonl'), headsBefore)
    const copied = JSON.parse((await linesOf(headsBefore)).at(-1) ?? '').tree_size
    // A head is in the file some moments before the database, from which exports are made.
    await eventually(async () => (await client.get('/audit/heads?limit=1')).body.items[0]?.tree_size >= copied)
    whole = await exported()
    ofTenant = await exported('--tenant', TENANT)
    ownKey = join(await emptyFolder(), 'own.key')
    const manifest = JSON.parse(await readFile(join(whole, 'manifest.json'), 'utf8'))
    await writeFile(ownKey, Object.values<string>(manifest.keys)[0] ?? '')
  })
  after(tidyUp)

  /** In this process, since most cases differ in the files alone. */
  const verify = async (
    folder: string,
    given: { readonly keys?: readonly string[]; readonly heads?: string; readonly asOfMs?: number } = {},
  ) => {
    const { signal } = new AbortController()
    const checks = await verifyFolder({ folder, ...given, startProgress: progressFor({ json: true }), signal })
    const findings = checks.filter(({ check }) => check !== 'files').flatMap(one => one.findings)
    return { checks, findings, kinds: findings.map(({ kind }) => kind) }
  }
  const verifyByCommand = async (folder: string) => {
    const { code, stdout, stderr } = await ledger(['verify', folder, '--json'], await emptyFolder())
    // Progress is printed where the machine is slow.
    expect(stderr.split('\n').filter(line => line !== '' && !line.startsWith('{"progress":'))).to.deep.equal([])
    return { code, verified: JSON.parse(stdout) as Verified }
  }

  type Change = (lines: string[]) => string[]

  /** A copy of an export with a file changed. */
  const changed = async (from: string, name: string, change: Change): Promise<string> => {
    const copy = join(await emptyFolder(), 'copy')
    await cp(from, copy, { recursive: true })
    const lines = change(await linesOf(join(copy, name)))
    await writeFile(join(copy, name), lines.map(line => `${line}\n`).join(''))
    return copy
  }
  /** The index of the line of the tenant's order. */
  const lineOf = async (folder: string, order: number): Promise<number> =>
    (await linesOf(join(folder, 'events.jsonl'))).findIndex(line => line.includes(`order-${orders[order]}`))

  it('exports everything up to a signed head, and verifies it without any service', async () => {
    const { code, verified } = await verifyByCommand(whole)
    expect(verified.checks.map(({ check, findings }) => [check, findings])).to.deep.equal([
      ['files', []],
      ['key', []],
      ['heads', []],
      ['events', []],
    ])
    expect([code, verified.ok]).to.deep.equal([0, true])
  })

  it('has leaves, heads and signatures that code from the documents alone verifies', async () => {
    const manifest = JSON.parse(await readFile(join(whole, 'manifest.json'), 'utf8'))
    const leaves = (await linesOf(join(whole, 'leaves.jsonl'))).map(line => JSON.parse(line))
    const events = await linesOf(join(whole, 'events.jsonl'))
    const own = leaves.filter(({ withheld }) => withheld === undefined)
    expect(own.map(({ leaf }) => leaf)).to.deep.equal(events.map(line => hashOfLeaf(Buffer.from(line)).toString('hex')))
    for (const line of events) expect(canonical(JSON.parse(line))).to.equal(line)
    const heads = (await linesOf(join(whole, 'heads.jsonl'))).map(line => JSON.parse(line) as HeadLine)
    const hashes = leaves.map(({ leaf }) => Buffer.from(leaf, 'hex'))
    for (const head of heads.slice(-20)) {
      expect(isSignedBy(head, manifest.keys[head.key])).to.equal(true)
      expect(naiveRoot(hashes.slice(0, head.tree_size)).toString('hex')).to.equal(head.root)
    }
    for (const [name, { sha256 }] of Object.entries<{ sha256: string }>(manifest.files))
      expect(
        createHash('sha256')
          .update(await readFile(join(whole, name)))
          .digest('hex'),
        name,
      ).to.equal(sha256)
  })

  it('exports the events of one tenant alone, and no secret of the service', async () => {
    const events = (await linesOf(join(ofTenant, 'events.jsonl'))).map(line => JSON.parse(line))
    expect([...new Set(events.map(({ metadata }) => metadata.tenant))]).to.deep.equal([TENANT])
    expect(events.filter(({ type }) => type === 'OrderCreated')).to.have.length(ORDERS)
    expect((await verify(ofTenant)).findings).to.deep.equal([])
    const leaves = await readFile(join(ofTenant, 'leaves.jsonl'), 'utf8')
    expect(leaves).to.include('"withheld":"present"')
    expect(await readFile(join(whole, 'events.jsonl'), 'utf8')).not.to.include('SecretMade')
  })

  it('has the stored parts of API keys in no export that is made for one tenant', async () => {
    const [own, all] = [
      await readFile(join(ofTenant, 'events.jsonl'), 'utf8'),
      await readFile(join(whole, 'events.jsonl'), 'utf8'),
    ]
    expect(own).not.to.match(/ApiKeyIssued|"nonce"/)
    expect(all).to.include(`"stream":"apiKey-${apiKey}"`)
  })

  it('is an audit record', async () => {
    const client = clientOf(service.api, await service.token({ tenant: TENANT }))
    const records = await eventually(async () => {
      const { body } = await client.get('/audit-records?operation=export_evidence')
      return body.items.length > 0 && body.items
    })
    expect(records[0]).to.include({ decision: 'granted', tenant_id: TENANT, client: 'ledger-cli' })
  })

  for (const [name, source] of [
    ['of all', () => whole],
    ['of one tenant', () => ofTenant],
  ] as const)
    describe(`in an export ${name}`, () => {
      it('names an edited event at the first place', async () => {
        const at = await lineOf(source(), 2)
        const folder = await changed(source(), 'events.jsonl', lines =>
          lines.map((line, n) => (n < at ? line : line.replace('"currency":"USD"', '"currency":"EUR"'))),
        )
        const { kinds, findings } = await verify(folder)
        expect(kinds).to.deep.equal(['edited'])
        expect(findings[0]?.place).to.include({ line: at + 1 })
      })

      it('names a deleted event', async () => {
        const at = await lineOf(source(), 1)
        const folder = await changed(source(), 'events.jsonl', lines => lines.filter((_, n) => n !== at))
        const { kinds, findings } = await verify(folder)
        expect(kinds).to.deep.equal(['missing'])
        expect(findings[0]?.place).to.include({ line: at + 1 })
      })

      it('names two swapped events', async () => {
        const [one, other] = [await lineOf(source(), 1), await lineOf(source(), 4)]
        const folder = await changed(source(), 'events.jsonl', lines =>
          lines.map((line, n) => (n === one ? lines[other] : n === other ? lines[one] : line) as string),
        )
        const { kinds, findings } = await verify(folder)
        expect(kinds).to.deep.equal(['reordered'])
        expect(findings[0]?.place).to.include({ line: one + 1, other_line: other + 1 })
      })

      it('names a truncated end', async () => {
        const at = await lineOf(source(), 4)
        const folder = await changed(source(), 'events.jsonl', lines => lines.slice(0, at))
        const { kinds, findings } = await verify(folder)
        expect(kinds).to.deep.equal(['truncated'])
        expect(findings[0]?.place).to.include({ line: at + 1 })
      })

      it('names an added and a repeated line', async () => {
        const at = await lineOf(source(), 3)
        const again = await changed(source(), 'events.jsonl', lines => lines.toSpliced(at, 0, lines[at - 1] as string))
        expect((await verify(again)).kinds).to.deep.equal(['surplus'])
        const added = await changed(source(), 'events.jsonl', lines => lines.toSpliced(at, 0, '{"v":1}'))
        expect((await verify(added)).kinds).to.deep.equal(['surplus'])
      })
    })

  it('names an event that was changed together with its leaf', async () => {
    const at = await lineOf(whole, 2)
    const edited = (lines: string[]) =>
      lines.map((line, n) => (n === at ? line.replace('"currency":"USD"', '"currency":"EUR"') : line))
    const folder = await changed(whole, 'events.jsonl', edited)
    const [old, now] = [
      (await linesOf(join(whole, 'events.jsonl')))[at],
      (await linesOf(join(folder, 'events.jsonl')))[at],
    ]
    const [before, after] = [old, now].map(line => hashOfLeaf(Buffer.from(line ?? '')).toString('hex'))
    const leaves = (await linesOf(join(folder, 'leaves.jsonl'))).map(line => line.replace(before ?? '', after ?? ''))
    await writeFile(join(folder, 'leaves.jsonl'), leaves.map(line => `${line}\n`).join(''))
    const { kinds, findings } = await verify(folder)
    expect(kinds).to.deep.equal(['edited'])
    expect((await verifyByCommand(folder)).code).to.equal(1)
    expect(findings[0]?.detail).to.match(/^The tree does not lead to the head/)
  })

  /** The same text with another last digit: a fixed one might be that of a random hash already. */
  const otherDigit = (text: string): string => `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`

  it('names a changed leaf, and not its event', async () => {
    const folder = await changed(whole, 'leaves.jsonl', lines =>
      lines.map((line, n) => (n === 1 ? line.replace(/"leaf":"./, otherDigit) : line)),
    )
    const { findings } = await verify(folder)
    expect(findings[0]?.detail).to.match(/in leaves\.jsonl was changed; its event is as it was signed\.$/)
  })

  it('names heads that are forged, missing or truncated', async () => {
    const forged = await changed(whole, 'heads.jsonl', lines =>
      lines.map((line, n) => (n === 0 ? line.replace(/"time":"\d{4}/, '"time":"2020') : line)),
    )
    expect((await verify(forged)).kinds).to.deep.equal(['edited'])
    const cut = await changed(whole, 'heads.jsonl', lines => lines.slice(0, -1))
    expect((await verify(cut)).kinds).to.include('truncated')
    const other = join(await emptyFolder(), 'key.pem')
    await writeFile(other, 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=')
    expect((await verify(whole, { keys: [other] })).kinds).to.include('unknown_key')
    expect((await verify(whole, { keys: [other, ownKey] })).findings).to.deep.equal([])
    const { code, stdout } = await ledger(['verify', whole, '--key', ownKey, '--key', other, '--heads', headsBefore])
    expect(code, stdout).to.equal(0)
  })

  it('is verified with the file that `evidence key` prints', async () => {
    const pem = join(await emptyFolder(), 'key.pem')
    const printed = await ledger(['evidence', 'key'])
    expect(printed.stdout).to.match(/^-----BEGIN PUBLIC KEY-----\n[^]*-----END PUBLIC KEY-----\n$/)
    const { publicKey } = generateKeyPairSync('ed25519')
    await writeFile(pem, `${String(publicKey.export({ format: 'pem', type: 'spki' }))}${printed.stdout}`)
    const verified = await ledger(['verify', whole, '--key', pem, '--heads', headsBefore])
    expect([verified.code, verified.stdout.trimEnd().split('\n').at(-1)]).to.deep.equal([0, 'Intact.'])
    await writeFile(pem, 'nothing')
    expect((await ledger(['verify', whole, '--key', pem])).stderr).to.include('evidence key')
  })

  it('says that the heads are signed by an unknown key where heads from elsewhere come without one', async () => {
    const { findings } = await verify(whole, { heads: headsBefore })
    expect(findings.map(({ kind }) => kind)).to.deep.equal(['unknown_key'])
    expect(findings[0]?.detail).to.match(/only copy of the signing key/)
    expect((await ledger(['verify', whole, '--heads', headsBefore])).code).to.equal(1)
  })

  it('names trusted heads that are not in the order of their sizes, and were not compared', async () => {
    const lines = await linesOf(headsBefore)
    const heads = join(await emptyFolder(), 'heads.jsonl')
    const newestFirst = lines.toReversed()
    const forked = { ...JSON.parse(lines[0] ?? ''), root: '0'.repeat(64) }
    for (const unordered of [newestFirst, [...lines, JSON.stringify(forked)]]) {
      expect(unordered).to.have.length.above(1)
      await writeFile(heads, unordered.map(line => `${line}\n`).join(''))
      const { kinds, findings } = await verify(whole, { heads, keys: [ownKey] })
      expect(kinds).to.deep.equal(['not_compared'])
      expect(findings[0]?.detail).to.include('Sort them')
    }
  })

  it('of no event is a finding, and is refused for a tenant without one', async () => {
    const out = join(await emptyFolder(), 'evidence')
    for (const [tenant, reason] of [
      ['Acme ', /^A tenant is 1 to 63/],
      ['acmee', /^No signed event is of a tenant acmee\.$/m],
    ] as const) {
      const { code, stderr } = await ledger(['export', '--evidence', '--out', out, '--tenant', tenant])
      expect(code, stderr).to.equal(2)
      expect(stderr).to.match(reason)
    }
    const folder = await changed(ofTenant, 'leaves.jsonl', lines =>
      lines.map(line => {
        const { index, leaf } = JSON.parse(line)
        return JSON.stringify({ index, leaf, withheld: 'present' })
      }),
    )
    await writeFile(join(folder, 'events.jsonl'), '')
    const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
    await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, tenant: 'acmee', events: 0 }))
    expect((await verify(folder)).kinds).to.deep.equal(['not_compared'])
  })

  it('agrees with heads from elsewhere, and names those that differ', async () => {
    const { findings, checks } = await verify(whole, { heads: headsBefore, keys: [ownKey] })
    expect(findings).to.deep.equal([])
    expect(checks.find(({ check }) => check === 'events')?.counts).to.include({ withheld: 1 })
    const last = JSON.parse((await linesOf(join(whole, 'heads.jsonl'))).at(-1) ?? '')
    const other = join(await emptyFolder(), 'heads.jsonl')
    await writeFile(other, `${JSON.stringify({ ...last, root: '0'.repeat(64) })}\n`)
    expect((await verify(whole, { heads: other, keys: [ownKey] })).kinds).to.deep.equal(['edited'])
  })

  it('names trusted heads beyond its end, unless they are later than the time that the reader names', async () => {
    const last = JSON.parse((await linesOf(join(whole, 'heads.jsonl'))).at(-1) ?? '')
    const more = join(await emptyFolder(), 'heads.jsonl')
    const beyond = { ...last, tree_size: last.tree_size + 5, time: '2090-01-01T00:00:00.000Z' }
    await writeFile(more, [last, beyond].map(head => `${JSON.stringify(head)}\n`).join(''))
    const { kinds, findings } = await verify(whole, { heads: more, keys: [ownKey] })
    expect(kinds).to.deep.equal(['truncated'])
    expect(findings[0]?.detail).to.include('--as-of')
    const asOfMs = Date.parse('2089-01-01T00:00:00.000Z')
    expect((await verify(whole, { heads: more, keys: [ownKey], asOfMs })).kinds).to.deep.equal([])
    expect((await verify(whole, { heads: more, keys: [ownKey], asOfMs: asOfMs * 2 })).kinds).to.deep.equal([
      'truncated',
    ])
    await writeFile(more, `${JSON.stringify({ ...last, generation: last.generation + 1 })}\n`)
    expect((await verify(whole, { heads: more, keys: [ownKey] })).kinds).to.deep.equal(['truncated', 'not_compared'])
  })

  it('refuses a file of trusted heads that is absent or empty', async () => {
    const none = join(await emptyFolder(), 'heads.jsonl')
    expect((await rejectionOf(verify(whole, { heads: none }))).message).to.match(/cannot be read/)
    await writeFile(none, '')
    expect((await rejectionOf(verify(whole, { heads: none }))).message).to.match(/has no head/)
  })

  it('names an event that was taken away and whose leaf was marked as withheld', async () => {
    const at = await lineOf(whole, 2)
    const [line = ''] = (await linesOf(join(whole, 'events.jsonl'))).slice(at, at + 1)
    const hash = hashOfLeaf(Buffer.from(line)).toString('hex')
    const folder = await changed(whole, 'events.jsonl', lines => lines.toSpliced(at, 1))
    const leaves = await linesOf(join(folder, 'leaves.jsonl'))
    const marked = leaves.map(leaf =>
      leaf.includes(hash) ? JSON.stringify({ index: JSON.parse(leaf).index, leaf: hash, withheld: 'present' }) : leaf,
    )
    await writeFile(join(folder, 'leaves.jsonl'), marked.map(leaf => `${leaf}\n`).join(''))
    const { kinds, findings } = await verify(folder)
    expect(kinds).to.deep.equal(['missing', 'edited'])
    expect(findings[0]?.detail).to.match(/^2 leaves have no event/)
  })

  it('names a manifest of another generation or log', async () => {
    const folder = await changed(whole, 'README.md', lines => lines)
    const manifest = JSON.parse(await readFile(join(whole, 'manifest.json'), 'utf8'))
    await writeFile(join(folder, 'manifest.json'), JSON.stringify({ ...manifest, log: 'another' }))
    expect((await verify(folder)).kinds).to.deep.equal(['edited'])
  })

  it('names damaged lines, files that are absent and unknown versions in a sentence', async () => {
    const bytes = await changed(whole, 'README.md', lines => lines)
    const text = await readFile(join(bytes, 'events.jsonl'))
    text[100] = 0xff
    await writeFile(join(bytes, 'events.jsonl'), text)
    expect((await verify(bytes)).findings[0]?.detail).to.match(/as it was signed: the line is not UTF-8\.$/)
    await writeFile(join(bytes, 'events.jsonl'), text.subarray(0, (await stat(join(whole, 'events.jsonl'))).size - 9))
    expect((await verify(bytes)).kinds).to.deep.equal(['edited'])
    await rm(join(bytes, 'events.jsonl'))
    expect((await verify(bytes)).kinds).to.deep.equal(['truncated'])
    const manifest = await readFile(join(bytes, 'manifest.json'), 'utf8')
    await writeFile(join(bytes, 'manifest.json'), manifest.replace('"v": 1', '"v": 2'))
    expect((await verify(bytes)).findings[0]?.detail).to.include('its version 2 is unknown')
    await rm(join(bytes, 'manifest.json'))
    expect((await verify(bytes)).findings[0]?.detail).to.include('does not exist')
  })

  it('refuses to write into a folder with other files, and to verify a folder that does not exist', async () => {
    const { code, stderr } = await ledger(['export', '--evidence', '--out', whole])
    expect([code, stderr]).to.deep.equal([2, `${whole} is not empty: name a folder that is, or that does not exist.\n`])
    const none = join(await emptyFolder(), 'none')
    expect((await ledger(['verify', none])).stderr).to.equal(
      `There is no folder ${none}. Name one that ledger export --evidence has written.\n`,
    )
    expect((await ledger(['export', '--out', none])).code).to.equal(2)
    expect(await readdir(whole)).to.have.members([
      'README.md',
      'events.jsonl',
      'heads.jsonl',
      'leaves.jsonl',
      'manifest.json',
    ])
  })
})
