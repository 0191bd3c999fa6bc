/**
 * Passes the authorization code to the page that asked for it, and closes this window. The script of Swagger UI goes on
 * after a wrong `state` with a warning; this one refuses it, since the response may be of a login that another site began.
 */

const asked = window.opener?.swaggerUIRedirectOauth2
const answer = new URLSearchParams(window.location.search)

const refuse = message => asked.errCb({ authId: asked.auth.name, source: 'auth', level: 'error', message })

if (asked) {
  const code = answer.get('code')
  if (answer.get('state') !== asked.state) refuse('The state of the response is not that of the request.')
  else if (code === null) refuse(`${answer.get('error')}: ${answer.get('error_description') ?? 'no code'}`)
  else {
    delete asked.state
    asked.auth.code = code
    asked.callback({ auth: asked.auth, redirectUrl: asked.redirectUrl })
  }
  window.close()
}
