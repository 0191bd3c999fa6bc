import { generateKeyPairSync, sign } from 'node:crypto'

/** A new self-signed certificate for each test, so that the repository contains none that expires. */

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
const integer = (value: number): Buffer => der(0x02, Buffer.of(value))
const bits = (bytes: Uint8Array): Buffer => der(0x03, Buffer.of(0), bytes)

const ECDSA_WITH_SHA256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
const COMMON_NAME = der(0x06, Buffer.from('550403', 'hex'))
const NO_END = '99991231235959Z'

const pem = (label: string, bytes: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${Buffer.from(bytes).toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`

export const selfSigned = (name = 'localhost'): { readonly cert: string; readonly key: string } => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = sequence(der(0x31, sequence(COMMON_NAME, text(0x0c, name))))
  const validity = sequence(text(0x18, '20200101000000Z'), text(0x18, NO_END))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const content = sequence(der(0xa0, integer(2)), integer(1), ECDSA_WITH_SHA256, subject, validity, subject, spki)
  const cert = sequence(content, ECDSA_WITH_SHA256, bits(sign('sha256', content, privateKey)))
  return { cert: pem('CERTIFICATE', cert), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
