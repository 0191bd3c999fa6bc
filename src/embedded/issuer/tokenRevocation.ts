import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { z } from 'zod'
import { tokenName } from '../../identity/revocations.ts'
import type { PublicKey } from './signingKey.ts'

/** Revocation of access tokens (RFC 7009). */

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
 * Lets clients revoke access tokens too (RFC 7009). The provider authenticates the client and ignores JWTs, since it
 * does not store them; here the token's name is added to the list of revocations that the API checks. Other tokens of
 * the grant stay valid; revoking the refresh token ends them. A token of another client, or an invalid one, is left
 * alone with the same response, which does not reveal whose it is.
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
