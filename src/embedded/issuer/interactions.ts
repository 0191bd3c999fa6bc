import type { IncomingMessage, ServerResponse } from 'node:http'
import { errors, type Provider } from 'oidc-provider'
import { isScope, type Scope } from '../../identity/principal.ts'
import { isConsole, isForTenant } from './consoleClient.ts'
import { formProof, isFromElsewhere, isProof, readForm } from './forms.ts'
import type { LoginThrottle } from './loginThrottle.ts'
import { consentPage } from './pages/consent.ts'
import { errorPage } from './pages/error.ts'
import { loginPage, type LoginView } from './pages/login.ts'
import { isFromThisMachine, isLoopback } from './loopback.ts'
import { type Page, sendPage } from './pages/page.ts'
import { isPassword } from './passwords.ts'
import { INTERACTION_ROUTE } from './endpoints.ts'
import { type ProviderOptions, resourceSpellings } from './provider.ts'
import { type DevUser, USERNAME } from './users.ts'

export type InteractionDependencies = Pick<ProviderOptions, 'issuer' | 'resource' | 'users'> & {
  readonly provider: Provider
  readonly formKey: string
  readonly throttle: LoginThrottle
  readonly addressOf: (request: IncomingMessage) => string
  readonly onError: (error: unknown) => void
}

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>
/** One step of a login: its interaction and its connection. */
type Step = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly dependencies: InteractionDependencies
  readonly interaction: Interaction
}

const FORGED = { error: 'forged' }

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const clientOf = async ({ dependencies, interaction }: Step) => {
  const client = await dependencies.provider.Client.find(textOf(interaction.params['client_id']))
  if (!client) throw new errors.InvalidClient('client is invalid')
  return client
}

const commonViewOf = async (step: Step) => {
  const { dependencies, interaction } = step
  const { redirect_uri } = interaction.params
  const client = await clientOf(step)
  return {
    application: client.clientName ?? client.clientId,
    tenant: textOf(client['tenant']),
    action: `${new URL(dependencies.issuer).pathname}${INTERACTION_ROUTE}/${interaction.uid}`,
    csrf: formProof(dependencies.formKey, interaction.uid),
    goesTo: textOf(redirect_uri),
  }
}

const userOf = async ({ dependencies, interaction }: Step): Promise<DevUser> => {
  const user = (await dependencies.users()).find(({ username }) => username === interaction.session?.accountId)
  if (!user) throw new errors.AccessDenied('the user is not registered any more')
  return user
}

/** The requested scopes, divided by whether the user has them. */
const divideScopes = ({ interaction }: Step, user: DevUser): { granted: Scope[]; withheld: Scope[] } => {
  const scopes = textOf(interaction.params['scope']).split(' ').filter(isScope)
  const own = new Set(user.scope.split(' '))
  return { granted: scopes.filter(scope => own.has(scope)), withheld: scopes.filter(scope => !own.has(scope)) }
}

/** Users without a password, for one click at the console of this machine; none where the service is on a network. */
const usersToChoose = async (step: Step): Promise<readonly DevUser[]> => {
  const { dependencies, request } = step
  const isLocal = isLoopback(dependencies.issuer) && isFromThisMachine(request, dependencies.addressOf(request))
  if (!isLocal || !isConsole(await clientOf(step))) return []
  return (await dependencies.users()).filter(({ password }) => password === undefined)
}

const showLogin = async (step: Step, more: Pick<LoginView, 'username' | 'problem'> = {}): Promise<Page> =>
  loginPage({ ...(await commonViewOf(step)), choices: await usersToChoose(step), ...more })

const showConsent = async (step: Step): Promise<Page> => {
  const user = await userOf(step)
  const identifies = textOf(step.interaction.params['scope']).split(' ').includes('openid')
  return consentPage({
    ...(await commonViewOf(step)),
    tenant: user.tenant,
    username: user.username,
    identifies,
    ...divideScopes(step, user),
  })
}

const show = (step: Step): Promise<Page> =>
  step.interaction.prompt.name === 'login' ? showLogin(step) : showConsent(step)

/** Completes this step; the browser continues with the next one, or returns to the application. */
const finish = async ({ request, response, dependencies }: Step, result: object): Promise<undefined> => {
  await dependencies.provider.interactionFinished(request, response, { ...result }, { mergeWithLastSubmission: false })
  return undefined
}

const deny = (step: Step): Promise<undefined> =>
  finish(step, { error: 'access_denied', error_description: 'the user refused' })

/** Ends the session of this browser. Grants of its user remain. */
const leaveSession = async ({ dependencies, interaction }: Step): Promise<void> => {
  if (!interaction.session) return
  await (await dependencies.provider.Session.find(interaction.session.cookie))?.destroy()
  delete interaction.session
  await interaction.persist()
}

/** Signs in one of the users to choose from, who need not allow the console what it does for them anyway. */
const choose = async (step: Step, username: string): Promise<Page | undefined> => {
  const user = (await usersToChoose(step)).find(choice => choice.username === username)
  if (user === undefined) return showLogin(step, { problem: 'wrong' })
  if (step.interaction.session && step.interaction.session.accountId !== username) await leaveSession(step)
  return finish(step, { login: { accountId: username, amr: ['user'] }, consent: await grantOf(step, user) })
}

/** The response and its duration are the same for a wrong name, password or tenant. */
const logIn = async (step: Step, form: ReadonlyMap<string, string>): Promise<Page | undefined> => {
  const { dependencies, request, interaction } = step
  const chosen = form.get('as')
  if (chosen !== undefined) return choose(step, chosen)
  const typed = (form.get('username') ?? '').trim().toLowerCase()
  const username = USERNAME.test(typed) ? typed : ''
  const attempt = { username, address: dependencies.addressOf(request) }
  const retryAfterSeconds = dependencies.throttle.begin(attempt)
  if (retryAfterSeconds !== undefined) return showLogin(step, { username, problem: { retryAfterSeconds } })
  const client = await clientOf(step)
  const user = (await dependencies.users()).find(
    candidate => candidate.username === username && isForTenant(client, candidate.tenant),
  )
  const isClientItself = username === interaction.params['client_id']
  const isRight = await isPassword(form.get('password') ?? '', user?.password)
  if (!isRight || isClientItself) return showLogin(step, { username, problem: 'wrong' })
  dependencies.throttle.succeed(attempt)
  if (interaction.session && interaction.session.accountId !== username) await leaveSession(step)
  return finish(step, { login: { accountId: username, amr: ['pwd'] } })
}

const consent = async (step: Step, form: ReadonlyMap<string, string>): Promise<undefined> => {
  const user = await userOf(step)
  if (form.get('decision') !== 'allow' || divideScopes(step, user).granted.length === 0) return deny(step)
  return finish(step, { consent: await grantOf(step, user) })
}

/** A grant of its own, to be revoked alone. Scopes that the user lacks are rejected, or they would be asked for again. */
const grantOf = async (step: Step, user: DevUser): Promise<{ readonly grantId: string }> => {
  const { dependencies, interaction } = step
  const { granted, withheld } = divideScopes(step, user)
  const grant = new dependencies.provider.Grant({
    accountId: user.username,
    clientId: textOf(interaction.params['client_id']),
  })
  grant.addOIDCScope(['openid', ...granted].join(' '))
  for (const resource of resourceSpellings(dependencies.resource)) grant.addResourceScope(resource, granted.join(' '))
  if (withheld.length > 0) {
    grant.rejectOIDCScope(withheld.join(' '))
    for (const resource of resourceSpellings(dependencies.resource))
      grant.rejectResourceScope(resource, withheld.join(' '))
  }
  return { grantId: await grant.save() }
}

const receive = async (step: Step, action: string): Promise<Page | undefined> => {
  const { request, dependencies, interaction } = step
  const form = isFromElsewhere(request) ? undefined : await readForm(request)
  if (!form || !isProof(formProof(dependencies.formKey, interaction.uid), form.get('csrf')))
    return errorPage(FORGED, 403)
  if (action === 'deny') return deny(step)
  // A form of an earlier step, sent again with the back button: the present step is shown.
  if (action !== interaction.prompt.name) return show(step)
  return action === 'login' ? logIn(step, form) : consent(step, form)
}

const failurePage = (error: unknown, onError: InteractionDependencies['onError']): Page => {
  if (error instanceof errors.OIDCProviderError) {
    const { message, error_description, statusCode } = error
    return errorPage({ error: message, ...(error_description ? { error_description } : {}) }, statusCode)
  }
  onError(error)
  return errorPage({ error: 'server_error' }, 500)
}

/** A step of a login: shows its page, or receives the form of a page, whose action is in the path. */
export const serveInteraction = async (
  request: IncomingMessage,
  response: ServerResponse,
  { uid, action, ...dependencies }: InteractionDependencies & { readonly uid: string; readonly action?: string },
): Promise<void> => {
  try {
    const interaction = await dependencies.provider.interactionDetails(request, response)
    // The cookie belongs to another login than the path.
    if (interaction.uid !== uid) throw new errors.SessionNotFound('interaction session not found')
    const step = { request, response, dependencies, interaction }
    const page = action === undefined ? await show(step) : await receive(step, action)
    if (page) sendPage(response, page)
  } catch (error) {
    sendPage(response, failurePage(error, dependencies.onError))
  }
}
