import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

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

/** 503 `temporarily_unavailable` without a dependency, else 500 `server_error`; the library would answer plain text. */
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
