import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { readConfig } from '../../../src/settings/config.ts'
import { createAddressOf, networkOf } from '../../../src/http/request/clientAddress.ts'
import { expectLinearCost } from '../../support/linearCost.ts'

/** Quadratic time would cost a hundred times as much per character. */
const LINEAR = [{ short: 1_000, long: 100_000 }, 10] as const

describe('the address of a client', () => {
  const TRUSTED = ['10.0.0.0/8', '192.0.2.7', '2001:db8:aaaa::/48']
  const of = (remoteAddress: string, headers: Record<string, string> = {}, trusted = TRUSTED): string =>
    createAddressOf(trusted)({ socket: { remoteAddress }, headers } as IncomingMessage)
  const listed = (value: string, peer = '10.1.1.1') => of(peer, { 'x-forwarded-for': value })
  const standard = (value: string, peer = '10.1.1.1') => of(peer, { forwarded: value })

  type Case = readonly [what: string, found: () => string, expected: string]
  const cases: readonly Case[] = [
    ['is the peer’s where no proxy is trusted', () => of('10.1.1.1', { 'x-forwarded-for': '1.2.3.4' }, []), '10.1.1.1'],
    ['is the peer’s where the peer is no trusted proxy', () => listed('1.2.3.4', '198.51.100.1'), '198.51.100.1'],
    ['is the peer’s where the proxy names none', () => of('10.1.1.1'), '10.1.1.1'],
    ['is the one that a trusted proxy has added', () => listed('198.51.100.1'), '198.51.100.1'],
    ['is read through a socket of both families', () => listed('198.51.100.1', '::ffff:10.1.1.1'), '198.51.100.1'],
    [
      'is the first from the right that is no proxy',
      () => listed('1.1.1.1, 198.51.100.1, 10.9.9.9, 192.0.2.7'),
      '198.51.100.1',
    ],
    ['is that of the last proxy, where all are', () => listed('10.9.9.9, 10.8.8.8'), '10.9.9.9'],
    ['may have a port', () => listed('198.51.100.1:4711'), '198.51.100.1'],
    ['may be an IPv6 address', () => listed('2001:db8::1'), '2001:db8::1'],
    ['may be an IPv6 address with a port', () => listed('[2001:db8::1]:4711'), '2001:db8::1'],
    ['may come from a proxy with an IPv6 address', () => listed('198.51.100.1', '2001:db8:aaaa::1'), '198.51.100.1'],
    ['is not searched beyond a text that is no address', () => listed('198.51.100.1, unknown'), '10.1.1.1'],
    ['is not searched beyond an empty element', () => listed('198.51.100.1, '), '10.1.1.1'],
    ['is in Forwarded too', () => standard('for=198.51.100.1;proto=https;by=10.1.1.1'), '198.51.100.1'],
    ['is in Forwarded in any order and case', () => standard('proto=https; For="[2001:db8::1]:4711"'), '2001:db8::1'],
    [
      'is the first from the right in Forwarded',
      () => standard('for=1.1.1.1, for=198.51.100.1, for=10.9.9.9'),
      '198.51.100.1',
    ],
    ['is not a quoted text in Forwarded', () => standard('for="a, for=1.1.1.1", for=198.51.100.1'), '198.51.100.1'],
    [
      'is not a quoted text in another parameter of Forwarded',
      () => standard('host="a;for=1.1.1.1";for=198.51.100.1'),
      '198.51.100.1',
    ],
    ['is not hidden by an open quote', () => standard('for=", for=198.51.100.1'), '10.1.1.1'],
    ['is not an obfuscated identifier', () => standard('for=_hidden'), '10.1.1.1'],
    ['is not another parameter of Forwarded', () => standard('by=198.51.100.1'), '10.1.1.1'],
    [
      'is accepted where both headers agree',
      () => of('10.1.1.1', { 'x-forwarded-for': '198.51.100.1', forwarded: 'for=198.51.100.1' }),
      '198.51.100.1',
    ],
    [
      'is not accepted where the headers differ, since a client may have written one of them',
      () => of('10.1.1.1', { 'x-forwarded-for': '198.51.100.1', forwarded: 'for=1.1.1.1' }),
      '10.1.1.1',
    ],
  ]
  for (const [what, actual, expected] of cases) it(what, () => expect(actual()).to.equal(expected))

  it('is found in linear time', async () => {
    for (const part of ['\\"', '"\\', '; ', 'for='])
      await expectLinearCost(count => () => expect(standard(part.repeat(count))).to.equal('10.1.1.1'), ...LINEAR)
  })

  it('counts as its network of 64 bits in IPv6, and as itself in IPv4', () => {
    expect(
      ['192.0.2.1', '2001:db8::1', '2001:db8:0:0:ffff::2', '2001:DB8:0:1::', '::1', ''].map(networkOf),
    ).to.deep.equal(['192.0.2.1', '2001:db8:0:0::/64', '2001:db8:0:0::/64', '2001:db8:0:1::/64', '0:0:0:0::/64', ''])
  })
})

describe('TRUSTED_PROXIES', () => {
  const proxies = (text: string) => readConfig({ TRUSTED_PROXIES: text }).trustedProxies
  it('is a list of addresses and blocks', () => {
    expect(proxies(' 10.0.0.0/8, 192.0.2.7,2001:db8::/32 ')).to.deep.equal(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32'])
    expect(proxies('')).to.deep.equal([])
  })
  for (const text of ['10.0.0.0/33', 'proxy.example', '10.0.0', '::/129', '10.0.0.0/', '*', '10.0.0.1/8/8'])
    it(`is refused as ${text}`, () => {
      expect(() => proxies(text)).to.throw(/TRUSTED_PROXIES=.* is neither an IP address nor a CIDR block/)
    })
})
