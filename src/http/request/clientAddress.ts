import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'

/** The address of the client, also behind the proxies of TRUSTED_PROXIES. */

export type AddressOf = (req: IncomingMessage) => string

/** The address without an IPv6 zone; an IPv4-mapped IPv6 address as IPv4. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')

/** `blocks`: addresses and CIDR blocks, validated in config.ts. */
const blockListOf = (blocks: readonly string[]): BlockList => {
  const list = new BlockList()
  for (const block of blocks) {
    const [address = '', prefix] = block.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}

/** The address of a node, with or without a port and brackets; undefined for anything else. */
const nodeOf = (text: string): string | undefined => {
  const [, bracketed, bare] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+)(?::\d{1,5})?)$/.exec(text) ?? []
  const address = plain(bracketed ?? bare ?? text)
  return isIP(address) === 0 ? undefined : address
}

type Hops = readonly (string | undefined)[]

const forwardedFor = (header: string): Hops => header.split(',').map(hop => nodeOf(hop.trim()))

const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`
const CLOSED = new RegExp(String.raw`^(?:[^"]|${QUOTED})*$`)
/** RFC 7239 §4: elements separated by commas, each with pairs separated by semicolons. */
const ELEMENT = new RegExp(String.raw`(?:${QUOTED}|[^",])+`, 'g')
const PAIR = new RegExp(String.raw`(?:${QUOTED}|[^";])+`, 'g')
const FOR = new RegExp(String.raw`^[ \t]*for=(${QUOTED}|[^" \t]+)`, 'i')
const unquoted = (text: string): string => text.replace(/^"(.*)"$/, '$1').replaceAll(/\\(.)/g, '$1')

/** The value of `for` outside of quoted strings: a proxy may pass on a quoted host that the client invented. */
const forIn = (element: string): string | undefined => {
  for (const [pair] of element.matchAll(PAIR)) {
    const [, node] = FOR.exec(pair) ?? []
    if (node !== undefined) return node
  }
  return undefined
}

/** An unclosed quote hides the hops that a proxy added after it: then no hop is used. */
const forwarded = (header: string): Hops => {
  if (!CLOSED.test(header)) return [undefined]
  return (header.match(ELEMENT) ?? []).map(element => nodeOf(unquoted(forIn(element) ?? '')))
}

const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header

/**
 * Each proxy appends the address of its peer. Entries before an address that is not a trusted proxy were written by the
 * client or an unknown proxy. A proxy that appends to one of the two headers may pass on the other as the client sent
 * it, so when they disagree, neither is used and the request counts as the proxy's own.
 */
export const createAddressOf = (trustedProxies: readonly string[]): AddressOf => {
  const trusted = blockListOf(trustedProxies)
  const isTrusted = (address: string): boolean => trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

  const clientIn = (hops: Hops, proxy: string): string => {
    let nearest = proxy
    for (const hop of hops.toReversed()) {
      if (hop === undefined) return nearest
      nearest = hop
      if (!isTrusted(hop)) return hop
    }
    return nearest
  }

  return ({ socket, headers }) => {
    const peer = plain(socket.remoteAddress ?? '')
    if (trustedProxies.length === 0 || isIP(peer) === 0 || !isTrusted(peer)) return peer
    const listed = textOf(headers['x-forwarded-for'])
    const standard = textOf(headers['forwarded'])
    const candidates = [
      ...(listed === undefined ? [] : [clientIn(forwardedFor(listed), peer)]),
      ...(standard === undefined ? [] : [clientIn(forwarded(standard), peer)]),
    ]
    return new Set(candidates).size === 1 ? (candidates[0] ?? peer) : peer
  }
}

const GROUPS = 8
const NETWORK_GROUPS = 4

/** The network by which addresses are counted: for IPv6 the /64, of which a host may use any address. */
export const networkOf = (address: string): string => {
  if (isIP(address) !== 6) return address
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: Math.max(0, GROUPS - before.length - after.length) }, () => '0')
  const groups = [...before, ...zeros, ...after].slice(0, NETWORK_GROUPS)
  return `${groups.map(group => Number.parseInt(group, 16).toString(16)).join(':')}::/64`
}
