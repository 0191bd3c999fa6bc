import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { errorPage } from './pages/error.ts'
import type { Page } from './pages/page.ts'

/** Errors of the issuer itself as OAuth errors, and as pages where the caller is a browser. */

const RETRY_AFTER_SECONDS = '1'
const UNAVAILABLE = {
  error: 'temporarily_unavailable',
  error_description: 'a required dependency is not responding',
}

/** Whether a dependency did not answer, by the error's name in the ports. */
export const isUnavailable = (error: unknown): boolean => error instanceof Error && error.name === 'Unavailable'

/** 503 with Retry-After, for a page whose database does not answer in time. */
export const unavailablePage = (): Page => ({
  ...errorPage(UNAVAILABLE, 503),
  headers: { 'retry-after': RETRY_AFTER_SECONDS },
})

/** Whether the response is a page for a browser; OAuth clients get JSON. */
export const isPage = ({ oidc }: KoaContextWithOIDC): boolean => ['authorization', 'resume'].includes(oidc.route)

const send = (ctx: KoaContextWithOIDC, error: unknown): void => {
  if (isUnavailable(error)) {
    ctx.status = 503
    ctx.set('Retry-After', RETRY_AFTER_SECONDS)
    ctx.body = UNAVAILABLE
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
