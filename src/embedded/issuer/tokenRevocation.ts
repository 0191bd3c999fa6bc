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

/** The claims of a living token of ours; nothing for any other text. */
const readOwn = async (token: string, { issuer, keys }: RevocationDependencies): Promise<JWTPayload | undefined> => {
  const ours = createLocalJWKSet({ keys: [...(await keys())] })
  return await jwtVerify(token, ours, { issuer, typ: 'at+jwt', algorithms: ['ES256'] }).then(
    ({ payload }) => payload,
    () => undefined,
  )
}

/**
 * Lets a client take back its access tokens too (RFC 7009). The provider authenticates the client and then sends every
 * JWT away, since it keeps none of them; here its name goes to the list that the API looks at. Other tokens under the same
 * grant live on: who wants them gone revokes the refresh token. A token that is not the client's, or none, is left alone,
 * and the answer is the same: it tells nobody whose a found token is.
 */
export const revokeAccessTokens = (provider: Provider, parts: RevocationDependencies): void => {
  provider.use(async (ctx: KoaContextWithOIDC, next) => {
    await next()
    const { oidc, body } = ctx
    const isTurnedAway = z.object({ error: z.literal('unsupported_token_type') }).safeParse(body).success
    if (!isTurnedAway || oidc.route !== 'revocation') return
    const claims = await readOwn(String(oidc.params?.['token']), parts)
    if (claims?.jti !== undefined && claims['client_id'] === oidc.client?.clientId)
      await parts.revoke(tokenName(claims.jti))
    ctx.status = 200
    ctx.body = ''
  })
}
