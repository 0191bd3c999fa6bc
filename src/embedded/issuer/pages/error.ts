import { html, nothing } from './html.ts'
import type { Page } from './page.ts'

export type ErrorView = {
  /** The OAuth error code: `invalid_request`. */
  readonly error: string
  /** Empty if there is none. */
  readonly error_description?: string
}

const EXPIRED = 'This sign-in has expired, or was begun in another browser. Go back to the application and start again.'

const SENTENCES: Readonly<Record<string, string>> = {
  invalid_client: 'The application that sent you here is not registered.',
  invalid_redirect_uri: 'The application wants you sent back to an address that is not registered for it.',
  expired: EXPIRED,
  forged: 'What was sent did not come from our page. Go back to the application and start again.',
  server_error: 'Something went wrong on our side. Nothing was decided; try again in a moment.',
}

/** The error in words for the user; details for the application's developers are below in small print. */
export const errorPage = (view: ErrorView, status = 400): Page => {
  const { error, error_description: detail } = view
  const isExpired =
    /interaction session|authorization session|authorization request has expired|session not found|session principal/.test(
      detail ?? '',
    )
  const sentence =
    SENTENCES[isExpired ? 'expired' : error] ??
    'The application that sent you here asked in a way that is not understood.'
  return {
    title: 'This did not work',
    status,
    body: html`<h1>This did not work</h1>
<p>${sentence}</p>
<p>Nothing was signed in or allowed.</p>
<p class="soft">For the makers of the application: <code>${error}</code>${detail ? html`, ${detail}` : nothing}</p>`,
  }
}
