import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

/** Errors of the issuer itself as OAuth errors; those of its pages are pages (provider.ts, interactions.ts). */

const RETRY_AFTER_SECONDS = '1'

/** Whether the response is a page for a browser; OAuth clients get JSON. */
export const isPage = ({ oidc }: KoaContextWithOIDC): boolean => ['authorization', 'resume'].includes(oidc.route)

const send = (ctx: KoaContextWithOIDC, error: unknown): void => {
  // The list of revocations is in the database; the name is that of the error in the ports.
  if (error instanceof Error && error.name === 'Unavailable') {
    ctx.status = 503
    ctx.set('Retry-After', RETRY_AFTER_SECONDS)
    ctx.body = { error: 'temporarily_unavailable', error_description: 'a required dependency is not responding' }
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
