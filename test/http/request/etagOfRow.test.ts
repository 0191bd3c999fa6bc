import { expect } from 'chai'
import { etagOfRow } from '../../../src/http/request/entityTags.ts'

describe('the entity tag of a row that later events may correct', () => {
  const version = '2026-11-01'
  const account = { code: 'cash.USD', balance_position: 7n, debits: 2n ** 60n, credits: 0n, pending: 0n }
  const entry = { position: 7n, at: '2026-01-01T00:00:00.000Z', reversed_by: null, postings: [{ amount: 1 }] }

  it('is the same for the same row, and visible characters in quotes', () => {
    expect(etagOfRow(account, version)).to.equal(etagOfRow({ ...account }, version))
    expect(etagOfRow(account, version)).to.match(/^"[\w-]+\.2026-11-01"$/)
  })

  it('differs with every value, with the version of the contract, and after an erasure', () => {
    const tags = [
      etagOfRow(account, version),
      etagOfRow({ ...account, debits: account.debits + 1n }, version),
      etagOfRow({ ...account, credits: 1n }, version),
      etagOfRow({ ...account, pending: -1n }, version),
      etagOfRow(entry, version),
      etagOfRow({ ...entry, at: '2026-01-01T00:00:00.001Z' }, version),
      etagOfRow({ ...entry, reversed_by: 'event' }, version),
      etagOfRow({ ...entry, postings: [{ amount: 2 }] }, version),
      etagOfRow(account, '2027-01-01'),
      etagOfRow(account, version, true),
    ]
    expect(new Set(tags).size).to.equal(tags.length)
  })
})
