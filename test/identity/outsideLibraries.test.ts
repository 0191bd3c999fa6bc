import { expect } from 'chai'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { decide, logIn } from './browser.ts'
import { type Delegation, openDelegation } from './oauthFlows.ts'
import { type NativeApplication, startNativeApplication } from './nativeApplication.ts'
import { retryingFetch } from '../support/client.ts'

/** Independent OAuth client libraries, configured with the base URL only, over real HTTP. */

const fetchOf = (url: string, options: object): Promise<Response> => retryingFetch(url, options)
/** Both libraries refuse plain http unless it is permitted explicitly. */
const insecure = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetchOf } as const

const BAD_TOKEN = 'eyJhbGciOiJFUzI1NiJ9.e30.AAAA'

/** The challenge in WWW-Authenticate of a refused call, as parsed by the library. */
const challengeOf = async (call: Promise<Response>): Promise<oauth.WWWAuthenticateChallengeParameters> => {
  const refused = await call.then(
    ({ status }) => expect.fail(`The call was answered with ${status}.`),
    (error: unknown) => error,
  )
  if (!(refused instanceof oauth.WWWAuthenticateChallengeError)) throw refused
  const [challenge] = refused.cause
  expect(challenge?.scheme).to.equal('bearer')
  return challenge?.parameters ?? {}
}

describe('identity: third-party client libraries', () => {
  let d: Delegation
  let native: NativeApplication

  before(async () => {
    d = await openDelegation()
    native = await startNativeApplication()
  })

  after(() => native.close())

  const base = (): URL => new URL(d.service.api)
  const call = (token: string, path = '/orders'): Promise<Response> =>
    oauth.protectedResourceRequest(token, 'GET', new URL(path, base()), undefined, undefined, insecure)

  /** Acts as the browser: signs in, consents, and returns the redirect URI with its parameters. */
  const authorizeAt = async (url: URL): Promise<URL> => {
    const on = d.browser()
    const { left } = await decide(on, await logIn(on, await on.get(url.href), d.users.user, d.password), 'allow')
    expect(left?.href).to.match(new RegExp(`^${native.redirectUri}\\?`))
    await fetch(left ?? '')
    return native.received.at(-1) ?? expect.fail('The application received nothing.')
  }

  describe('oauth4webapi', () => {
    /** Follows the links from a refused call to the metadata of the authorization server. */
    const discover = async (): Promise<{ as: oauth.AuthorizationServer; resource: oauth.ResourceServer }> => {
      const { resource_metadata } = await challengeOf(call(BAD_TOKEN))
      const described = await retryingFetch(resource_metadata ?? '')
      const resource = await oauth.processResourceDiscoveryResponse(base(), described)
      const issuer = new URL(resource.authorization_servers?.[0] ?? '')
      const metadata = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' })
      return { as: await oauth.processDiscoveryResponse(issuer, metadata), resource }
    }

    it('gets a token after a refused call, with a loopback redirect to any port', async () => {
      const { as, resource } = await discover()
      const client: oauth.Client = { client_id: d.clients.web }
      const verifier = oauth.generateRandomCodeVerifier()
      const state = oauth.generateRandomState()
      const url = new URL(as.authorization_endpoint ?? '')
      const requested = {
        client_id: d.clients.web,
        response_type: 'code',
        redirect_uri: native.redirectUri,
        scope: 'orders:read',
        resource: resource.resource,
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(requested)) url.searchParams.set(name, value)
      const answer = oauth.validateAuthResponse(as, client, await authorizeAt(url), state)
      const { redirectUri } = native
      const more = { ...insecure, additionalParameters: { resource: resource.resource } }
      const response = await oauth.authorizationCodeGrantRequest(
        as,
        client,
        oauth.None(),
        answer,
        redirectUri,
        verifier,
        more,
      )
      const first = await oauth.processAuthorizationCodeResponse(as, client, response)
      expect((await call(first.access_token)).status).to.equal(200)

      const renewed = await oauth.refreshTokenGrantRequest(as, client, oauth.None(), first.refresh_token ?? '', more)
      const second = await oauth.processRefreshTokenResponse(as, client, renewed)
      expect((await call(second.access_token)).status).to.equal(200)

      const token = second.refresh_token ?? ''
      const revoked = await oauth.revocationRequest(as, client, oauth.None(), token, insecure)
      expect(await oauth.processRevocationResponse(revoked)).to.equal(undefined)
      expect(await challengeOf(call(second.access_token))).to.include({ error: 'invalid_token' })
    })

    it('gets a token for a workload, which is an access token of RFC 9068', async () => {
      const { as, resource } = await discover()
      const client: oauth.Client = { client_id: d.clients.workload }
      const form = { scope: 'orders:read', resource: resource.resource }
      const secret = oauth.ClientSecretBasic(d.secret)
      const response = await oauth.clientCredentialsGrantRequest(as, client, secret, form, insecure)
      const { access_token } = await oauth.processClientCredentialsResponse(as, client, response)
      expect((await call(access_token)).status).to.equal(200)
      const request = new Request(base(), { headers: { authorization: `Bearer ${access_token}` } })
      const claims = await oauth.validateJwtAccessToken(as, request, 'payment-ledger', insecure)
      expect(claims).to.include({ client_id: d.clients.workload, scope: 'orders:read' })
      expect(await challengeOf(call(access_token, '/payments'))).to.include({
        error: 'insufficient_scope',
        scope: 'payments:read',
      })
    })

    it('discovers the resource by its base URL, and the issuer by OpenID Connect', async () => {
      const metadata = await oauth.resourceDiscoveryRequest(base(), insecure)
      const resource = await oauth.processResourceDiscoveryResponse(base(), metadata)
      expect(resource.resource).to.equal(d.service.api)
      const issuer = new URL(resource.authorization_servers?.[0] ?? '')
      const described = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oidc' })
      expect(await oauth.processDiscoveryResponse(issuer, described)).to.have.property('issuer', d.issuer)
    })
  })

  describe('openid-client', () => {
    for (const algorithm of ['oidc', 'oauth2'] as const)
      it(`logs a user in, renews and revokes, after discovery by ${algorithm}`, async () => {
        const execute = [openid.allowInsecureRequests]
        const config = await openid.discovery(new URL(d.issuer), d.clients.web, undefined, openid.None(), {
          algorithm,
          execute,
          [openid.customFetch]: fetchOf,
        })
        const pkceCodeVerifier = openid.randomPKCECodeVerifier()
        const [expectedState, expectedNonce] = [openid.randomState(), openid.randomNonce()]
        const url = openid.buildAuthorizationUrl(config, {
          redirect_uri: native.redirectUri,
          scope: 'openid orders:read',
          // URL libraries add the trailing slash.
          resource: base().href,
          code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
          code_challenge_method: 'S256',
          state: expectedState,
          nonce: expectedNonce,
        })
        const checks = { pkceCodeVerifier, expectedState, expectedNonce }
        const first = await openid.authorizationCodeGrant(config, await authorizeAt(url), checks, {
          resource: base().href,
        })
        expect(first.claims()).to.include({ sub: d.users.user })
        const get = (token: string) => openid.fetchProtectedResource(config, token, new URL('/orders', base()), 'GET')
        expect((await get(first.access_token)).status).to.equal(200)
        const second = await openid.refreshTokenGrant(config, first.refresh_token ?? '')
        expect((await get(second.access_token)).status).to.equal(200)
        await openid.tokenRevocation(config, second.access_token)
        expect(await challengeOf(get(second.access_token))).to.include({ error: 'invalid_token' })
        expect((await openid.refreshTokenGrant(config, second.refresh_token ?? '')).access_token).to.be.a('string')
      })

    it('gets a token for a workload, and invalid_target for an unknown resource', async () => {
      const config = await openid.discovery(
        new URL(d.issuer),
        d.clients.workload,
        d.secret,
        openid.ClientSecretPost(d.secret),
        {
          execute: [openid.allowInsecureRequests],
          [openid.customFetch]: fetchOf,
        },
      )
      const { access_token } = await openid.clientCredentialsGrant(config, {
        scope: 'orders:read',
        resource: d.service.api,
      })
      expect((await call(access_token)).status).to.equal(200)
      const elsewhere = { scope: 'orders:read', resource: 'https://other.test' }
      const refused = await openid.clientCredentialsGrant(config, elsewhere).catch((error: unknown) => error)
      expect(refused).to.be.instanceOf(openid.ResponseBodyError).and.include({ error: 'invalid_target', status: 400 })
    })
  })
})
