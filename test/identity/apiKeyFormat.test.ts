import { expect } from 'chai'
import fc from 'fast-check'
import { formatKey, parseKey, prefixOf } from '../../src/identity/apiKeyFormat.ts'
import { createApiKeySecrets, isSameHash } from '../../src/identity/apiKeySecrets.ts'
import { id } from '../streams/samples.ts'

const ID = id('key', 7)
const SUFFIX = ID.slice('key_'.length)
/** Keys as 1.0.0 issues them: every later version must accept them. */
const RECORDED = {
  zeros: `lk_dev_${SUFFIX}_0000000000000000000000000000000000000000000_1DAoSD`,
  ones: `lk_live_${SUFFIX}_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1_0VXMG0`,
}
const FORMAT = /^lk_dev_[0-9A-HJKMNP-TV-Z]{26}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/
const PEPPER = 'thirty-two characters at the least'

const secret = fc.uint8Array({ minLength: 32, maxLength: 32 })

describe('identity: the format of an API key', () => {
  it('is that of the contract for every secret, and can be parsed', () =>
    fc.assert(
      fc.property(secret, bytes => {
        const key = formatKey('dev', ID, bytes)
        expect(key).to.match(FORMAT)
        const parsed = parseKey(key)
        expect(parsed).to.include({ environment: 'dev', id: ID })
        expect(key).to.include(typeof parsed === 'string' ? '' : `_${parsed.secret}_`)
      }),
    ))

  it('differs for each secret', () =>
    fc.assert(
      fc.property(secret, secret, (a, b) => {
        const same = Buffer.from(a).equals(Buffer.from(b))
        expect(formatKey('dev', ID, a) === formatKey('dev', ID, b)).to.equal(same)
      }),
    ))

  it('does not change from one version to the next', () => {
    expect(formatKey('dev', ID, new Uint8Array(32))).to.equal(RECORDED.zeros)
    expect(formatKey('live', ID, new Uint8Array(32).fill(255))).to.equal(RECORDED.ones)
  })

  it('reveals one wrong character or two swapped neighbours without a lookup', () => {
    const key = formatKey(
      'dev',
      ID,
      Uint8Array.from({ length: 32 }, (_, n) => n * 7),
    )
    for (let at = 0; at < key.length; at += 1) {
      const [letter = '', next = ''] = key.slice(at, at + 2)
      for (const other of ['0', 'Z', 'a', '_'])
        if (other !== letter)
          expect(parseKey(`${key.slice(0, at)}${other}${key.slice(at + 1)}`), `${at} ${other}`).to.be.a('string')
      if (letter !== next && next !== '')
        expect(parseKey(`${key.slice(0, at)}${next}${letter}${key.slice(at + 2)}`), `${at}`).to.be.a('string')
    }
  })

  const whole = formatKey('dev', ID, new Uint8Array(32))
  const wrong: Readonly<Record<string, string>> = {
    'an empty text': '',
    'the beginning of a key': 'lk_dev',
    'a key without its last character': whole.slice(0, -1),
    'a key with one character more': `${whole}0`,
    'a key with a space behind it': `${whole} `,
    'a key with a line feed behind it': `${whole}\n`,
    'a key with another key behind it': `${whole}, ${whole}`,
    'a key in upper case': whole.toUpperCase(),
    'a key with the prefix of its id': whole.replace(SUFFIX, ID),
    'a key without its prefix': whole.slice(3),
    'a very long text': 'lk_'.repeat(5_000),
  }
  for (const [what, text] of Object.entries(wrong))
    it(`is not that of ${what}`, () => expect(parseKey(text)).to.equal('key_malformed'))

  it('distinguishes a wrong checksum from a malformed key', () =>
    expect(parseKey(`${whole.slice(0, -1)}0`)).to.equal('key_checksum_wrong'))

  it('begins with the public prefix', () => {
    expect(prefixOf('live', ID)).to.equal(`lk_live_${SUFFIX}`)
    expect(formatKey('live', ID, new Uint8Array(32)).startsWith(`${prefixOf('live', ID)}_`)).to.equal(true)
  })
})

describe('identity: the secrets of API keys', () => {
  const secrets = createApiKeySecrets('dev', PEPPER)
  const keyOf = (key: string) => {
    const parsed = parseKey(key)
    if (typeof parsed === 'string') throw new Error(parsed)
    return parsed
  }

  it('are equal for the same id, nonce and pepper, and differ for any other', () => {
    const key = secrets.keyOf(ID, 'n1')
    expect(createApiKeySecrets('dev', PEPPER).keyOf(ID, 'n1')).to.equal(key)
    const others = [
      secrets.keyOf(ID, 'n2'),
      secrets.keyOf(id('key', 8), 'n1'),
      createApiKeySecrets('dev', `${PEPPER}!`).keyOf(ID, 'n1'),
    ].map(other => keyOf(other).secret)
    expect(new Set([keyOf(key).secret, ...others]).size).to.equal(4)
  })

  it('are recognised by a hash of the id, the secret and the pepper', () => {
    const key = secrets.keyOf(ID, 'n1')
    const hash = secrets.hashOf(ID, 'n1')
    expect(hash).to.match(/^[0-9a-f]{64}$/)
    expect(secrets.hashOfSent(ID, keyOf(key).secret)).to.equal(hash)
    expect(secrets.hashOfSent(id('key', 8), keyOf(key).secret)).to.not.equal(hash)
    expect(createApiKeySecrets('dev', `${PEPPER}!`).hashOfSent(ID, keyOf(key).secret)).to.not.equal(hash)
  })

  it('cannot be derived from the hash of a nonce', () => {
    const bits = BigInt(`0x${secrets.hashOfSent(ID, 'n1')}`)
    const asKey = formatKey('dev', ID, Buffer.from(bits.toString(16).padStart(64, '0'), 'hex'))
    expect(asKey).to.not.equal(secrets.keyOf(ID, 'n1'))
  })

  it('are compared by their whole hash', () => {
    expect(isSameHash('ab', 'ab')).to.equal(true)
    for (const other of ['ac', 'a', 'abc', '']) expect(isSameHash('ab', other)).to.equal(false)
  })
})
