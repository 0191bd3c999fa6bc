import { constants, generateKeyPairSync, type KeyObject, randomUUID, type SignKeyObjectInput, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { calculateJwkThumbprint, type JWK } from 'jose'

export const TEST_AUDIENCE = 'https://ledger.test'

/** Tokens are signed with node:crypto, since JWT libraries refuse to create most of the invalid ones. */
const algorithms = {
  ES256: { digest: 'sha256', options: { dsaEncoding: 'ieee-p1363' } },
  ES384: { digest: 'sha384', options: { dsaEncoding: 'ieee-p1363' } },
  RS256: { digest: 'sha256', options: {} },
  RS384: { digest: 'sha384', options: {} },
  PS256: { digest: 'sha256', options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } },
} as const satisfies Record<string, { digest: string; options: Partial<SignKeyObjectInput> }>

export type TestAlgorithm = keyof typeof algorithms

/** A key pair of an issuer; `kid` is the thumbprint unless given. */
export type TestKey = {
  readonly alg: TestAlgorithm
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly publicJwk: JWK
}

const generatePair = (alg: TestAlgorithm, modulusLength: number): { privateKey: KeyObject; publicKey: KeyObject } => {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  if (alg === 'ES384') return generateKeyPairSync('ec', { namedCurve: 'P-384' })
  return generateKeyPairSync('rsa', { modulusLength })
}

export const generateTestKey = async (
  alg: TestAlgorithm = 'ES256',
  { kid, modulusLength = 2048 }: { readonly kid?: string; readonly modulusLength?: number } = {},
): Promise<TestKey> => {
  const { privateKey, publicKey } = generatePair(alg, modulusLength)
  const jwk = publicKey.export({ format: 'jwk' })
  const name = kid ?? (await calculateJwkThumbprint(jwk))
  return { alg, kid: name, privateKey, publicKey, publicJwk: { ...jwk, alg, use: 'sig', kid: name } }
}

export type Members = Readonly<Record<string, unknown>>

/** Valid claims of a workload; given members replace these, `undefined` removes one. Times are Unix seconds. */
export const claimsFor = (issuer: string, changes: Members = {}, nowMs: number = Date.now()): Members => {
  const iat = Math.floor(nowMs / 1000)
  const client = 'client-1'
  return {
    iss: issuer,
    aud: TEST_AUDIENCE,
    sub: client,
    client_id: client,
    jti: randomUUID(),
    tenant: 'acme',
    scope: 'orders:read orders:write',
    iat,
    exp: iat + 300,
    ...changes,
  }
}

export const headerFor = ({ alg, kid }: TestKey, changes: Members = {}): Members => ({
  alg,
  kid,
  typ: 'at+jwt',
  ...changes,
})

export const base64url = (bytes: string | Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** Signs any two byte strings as header and payload, also invalid ones. */
export const signBytes = (key: TestKey, header: string | Uint8Array, payload: string | Uint8Array): string => {
  const input = `${base64url(header)}.${base64url(payload)}`
  const { digest, options } = algorithms[key.alg]
  return `${input}.${base64url(sign(digest, Buffer.from(input), { key: key.privateKey, ...options }))}`
}

/** Signs the claims; `undefined` members are omitted, as in any JSON. */
export const signToken = (key: TestKey, claims: Members, header: Members = {}): string =>
  signBytes(key, JSON.stringify(headerFor(key, header)), JSON.stringify(claims))

export type TestIssuer = {
  /** `http://127.0.0.1:…/oauth`. */
  readonly issuer: string
  /** Publishes these keys in place of the earlier ones. */
  publish(...keys: readonly TestKey[]): void
  /** While it is down, every connection is closed. */
  setDown(down: boolean): void
  /** The number of requests for the key set. */
  fetches(): number
  close(): Promise<void>
}

const issuerOf = (server: Server): string => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The test issuer does not listen.')
  return `http://127.0.0.1:${address.port}/oauth`
}

/** A server for a JWKS and its metadata, without the rest of an issuer. */
export const startTestIssuer = async (...initial: readonly TestKey[]): Promise<TestIssuer> => {
  let published = initial
  let down = false
  let fetches = 0
  const documents: Readonly<Record<string, () => unknown>> = {
    '/jwks': () => {
      fetches += 1
      return { keys: published.map(({ publicJwk }) => publicJwk) }
    },
    '/.well-known/oauth-authorization-server/oauth': () => {
      const issuer = issuerOf(server)
      return { issuer, jwks_uri: new URL('/jwks', issuer).href }
    },
  }
  const server = createServer((request, response) => {
    const document = documents[request.url ?? '']
    if (down) request.socket.destroy()
    else if (document) response.setHeader('content-type', 'application/json').end(JSON.stringify(document()))
    else response.writeHead(404).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    issuer: issuerOf(server),
    publish: (...keys) => {
      published = keys
    },
    setDown: value => {
      down = value
    },
    fetches: () => fetches,
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
