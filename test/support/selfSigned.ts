import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'

/** New certificates for each test, so that the repository contains none that expires. */

/** DER requires the shortest form of a length. */
const lengthOf = ({ length }: Uint8Array): Buffer => {
  if (length < 0x80) return Buffer.of(length)
  return length < 0x100 ? Buffer.of(0x81, length) : Buffer.of(0x82, Math.floor(length / 0x100), length % 0x100)
}
const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(tag), lengthOf(body), body])
}
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts)
const text = (tag: number, value: string): Buffer => der(tag, Buffer.from(value))
const integer = (value: Uint8Array): Buffer => der(0x02, value)
const identifier = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const bits = (bytes: Uint8Array): Buffer => der(0x03, Buffer.of(0), bytes)

const ECDSA_WITH_SHA256 = sequence(identifier('2a8648ce3d040302'))
const COMMON_NAME = identifier('550403')
const ALTERNATIVE_NAMES = identifier('551d11')
const BASIC_CONSTRAINTS = identifier('551d13')
const TRUE = der(0x01, Buffer.of(0xff))
const VERSION_3 = der(0xa0, integer(Buffer.of(2)))
const BEGIN = '20200101000000Z'
const NO_END = '99991231235959Z'
const PAST_END = '20200102000000Z'

const pem = (label: string, bytes: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${Buffer.from(bytes)
    .toString('base64')
    .replace(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`

const nameOf = (name: string): Buffer => sequence(der(0x31, sequence(COMMON_NAME, text(0x0c, name))))

const extension = (id: Uint8Array, value: Uint8Array): Buffer => sequence(id, der(0x04, value))

const alternative = (name: string): Buffer =>
  isIPv4(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : text(0x82, name)

type Content = {
  readonly issuer: string
  readonly subject: string
  readonly publicKey: KeyObject
  readonly end: string
  readonly extensions: readonly Uint8Array[]
}

const signed = ({ issuer, subject, publicKey, end, extensions }: Content, issuerKey: KeyObject): string => {
  const serial = integer(Buffer.of(1, ...randomBytes(8)))
  const validity = sequence(text(0x18, BEGIN), text(0x18, end))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const names = [nameOf(issuer), validity, nameOf(subject)] as const
  const added = extensions.length === 0 ? [] : [der(0xa3, sequence(...extensions))]
  const content = sequence(VERSION_3, serial, ECDSA_WITH_SHA256, ...names, spki, ...added)
  return pem('CERTIFICATE', sequence(content, ECDSA_WITH_SHA256, bits(sign('sha256', content, issuerKey))))
}

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

export type Certified = { readonly cert: string; readonly key: string }

export const selfSigned = (name = 'localhost'): Certified => {
  const { publicKey, privateKey } = newKeys()
  const cert = signed({ issuer: name, subject: name, publicKey, end: NO_END, extensions: [] }, privateKey)
  return { cert, key: pemOf(privateKey) }
}

export type Authority = {
  readonly cert: string
  /** A certificate for these host names and addresses; `expired`: its time has passed. */
  readonly issue: (names: readonly string[], validity?: 'expired') => Certified
}

export const newAuthority = (issuer: string): Authority => {
  const own = newKeys()
  const constraints = extension(BASIC_CONSTRAINTS, sequence(TRUE))
  const content = { issuer, subject: issuer, publicKey: own.publicKey, end: NO_END, extensions: [constraints] }
  return {
    cert: signed(content, own.privateKey),
    issue: (names, validity) => {
      const { publicKey, privateKey } = newKeys()
      const extensions = [extension(ALTERNATIVE_NAMES, sequence(...names.map(alternative)))]
      const end = validity === undefined ? NO_END : PAST_END
      const cert = signed({ issuer, subject: names[0] ?? '', publicKey, end, extensions }, own.privateKey)
      return { cert, key: pemOf(privateKey) }
    },
  }
}
