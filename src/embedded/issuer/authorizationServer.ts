import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import { interactionOf } from './endpoints.ts'
import { answerFailures } from './errorResponses.ts'
import { type InteractionDependencies, serveInteraction } from './interactions.ts'
import { type AdapterDependencies, createAdapters } from './oidcAdapters.ts'
import { createProvider } from './provider.ts'
import type { PublicKey, SigningKey } from './signingKey.ts'
import { revokeAccessTokens } from './tokenRevocation.ts'

export type AuthorizationServerOptions = Omit<InteractionDependencies, 'provider' | 'formKey'> & {
  readonly audience: string
  readonly adapters: AdapterDependencies
  readonly keys: () => Promise<readonly PublicKey[]>
  readonly signingKey: () => Promise<SigningKey>
  /** The key that signs cookies and forms. */
  readonly cookieKey: string
}

/** Resolves when the request was passed on, which may be before its response. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void>

type Callback = ReturnType<Provider['callback']>

/** The provider for the present signing key. It has no state of its own, so it can be replaced at any time. */
const followKey = (key: () => Promise<SigningKey>, open: (key: SigningKey) => Provider) => {
  let current: { readonly kid: string; readonly provider: Provider; readonly serve: Callback } | undefined
  return async () => {
    const signing = await key()
    if (current?.kid !== signing.kid) {
      const provider = open(signing)
      current = { kid: signing.kid, provider, serve: provider.callback() }
    }
    return current
  }
}

export const createAuthorizationServer = (options: AuthorizationServerOptions): Serve => {
  const { issuer, audience, resource, adapters, keys, signingKey, users, cookieKey, onError } = options
  const adapter = createAdapters(adapters)
  const current = followKey(signingKey, key => {
    const provider = createProvider({ issuer, audience, resource, key, adapter, users, cookieKey })
    answerFailures(provider, onError)
    // The library's types lack this event of Koa. With a listener, Koa does not print the error itself.
    const koa: EventEmitter = provider
    koa.on('error', onError)
    revokeAccessTokens(provider, { issuer, keys, revoke: adapters.revoke })
    return provider
  })
  return async (request, response) => {
    const { provider, serve } = await current()
    const step = interactionOf(request)
    if (step) return serveInteraction(request, response, { ...options, ...step, formKey: cookieKey, provider })
    response.setHeader('cache-control', 'no-store')
    response.setHeader('x-content-type-options', 'nosniff')
    void serve(request, response)
  }
}
