/**
 * Starts Swagger UI on this page: the contract of the chosen version, and a login at the embedded issuer by authorization
 * code with PKCE. The settings are attributes of the element, because the policy of the page permits no inline script.
 */

const element = document.querySelector('#docs')
const { version, clientId, scopes } = element.dataset

const ui = window.SwaggerUIBundle({
  domNode: element,
  url: '/openapi.json',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'none',
  persistAuthorization: false,
  oauth2RedirectUrl: `${window.location.origin}/docs/oauth2-redirect.html`,
  // The header chooses the document; requests that are tried out are of the same version.
  requestInterceptor: request => {
    if (new URL(request.url, window.location.href).origin !== window.location.origin) return request
    if (!request.url.includes('/oauth/')) request.headers['API-Version'] = version
    return request
  },
})
ui.initOAuth({
  clientId,
  scopes,
  usePkceWithAuthorizationCodeGrant: true,
  additionalQueryStringParams: { resource: window.location.origin },
})
