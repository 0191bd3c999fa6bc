import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { z } from 'zod'
import { tokenName } from '../../identity/revocations.ts'
import type { PublicKey } from './signingKey.ts'

export type RevocationDependencies = {
  readonly issuer: string
  readonly keys: () => Promise<readonly PublicKey[]>
  readonly revoke: (name: string) => Promise<void>
}

/** The claims of a valid token of this issuer; undefined for any other text. */
const readOwn = async (token: string, { issuer, keys }: RevocationDependencies): Promise<JWTPayload | undefined> => {
  const ours = createLocalJWKSet({ keys: [...(await keys())] })
  return await jwtVerify(token, ours, { issuer, typ: 'at+jwt', algorithms: ['ES256'] }).then(
    ({ payload }) => payload,
    () => undefined,
  )
}

/**
 * RFC 7009 for access tokens, which the provider does not store: the name is added to the list that the API checks. A
 * token of another client, or an invalid one, has the same response.
 */
export const revokeAccessTokens = (provider: Provider, dependencies: RevocationDependencies): void => {
  provider.use(async (ctx: KoaContextWithOIDC, next) => {
    await next()
    const { oidc, body } = ctx
    const isUnsupported = z.object({ error: z.literal('unsupported_token_type') }).safeParse(body).success
    if (!isUnsupported || oidc.route !== 'revocation') return
    const claims = await readOwn(String(oidc.params?.['token']), dependencies)
    if (claims?.jti !== undefined && claims['client_id'] === oidc.client?.clientId)
      await dependencies.revoke(tokenName(claims.jti))
    ctx.status = 200
    ctx.body = ''
  })
}
