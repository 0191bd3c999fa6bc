import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

/** Errors of the issuer itself as OAuth errors. */

const RETRY_AFTER_SECONDS = '1'

/** Whether a dependency did not answer, by the error's name in the ports. */
const isUnavailable = (error: unknown): boolean => error instanceof Error && error.name === 'Unavailable'

const isPage = ({ oidc }: KoaContextWithOIDC): boolean => ['authorization', 'resume'].includes(oidc.route)

const send = (ctx: KoaContextWithOIDC, error: unknown): void => {
  if (isUnavailable(error)) {
    ctx.status = 503
    ctx.set('Retry-After', RETRY_AFTER_SECONDS)
    ctx.body = { error: 'temporarily_unavailable', error_description: 'a part that this needs does not answer' }
  } else {
    ctx.status = 500
    ctx.body = { error: 'server_error', error_description: 'the request could not be completed' }
  }
}

/**
 * Failures of the issuer itself as OAuth errors: 503 `temporarily_unavailable` while a dependency does not answer, else
 * 500 `server_error`. Errors outside the library's own handling would otherwise be answered in plain text.
 */
export const answerFailures = (provider: Provider, onError: (error: unknown) => void): void => {
  provider.on('server_error', (ctx, error: unknown) => {
    onError(error)
    if (!isPage(ctx)) send(ctx, error)
  })
  provider.use(async (ctx: KoaContextWithOIDC, next) => {
    try {
      await next()
    } catch (error) {
      onError(error)
      send(ctx, error)
    }
  })
}
