import { type Html, html, nothing } from './html.ts'
import type { DevUser } from '../users.ts'
import type { Page } from './page.ts'

export type LoginView = {
  readonly application: string
  /** Empty for an application of all tenants. */
  readonly tenant: string
  /** The users to sign in as with one click. */
  readonly choices: readonly Pick<DevUser, 'username' | 'tenant'>[]
  /** The action of the forms: this page's own address. */
  readonly action: string
  readonly csrf: string
  readonly goesTo: string
  /** The username of the failed attempt, to be corrected. */
  readonly username?: string
  readonly problem?: 'wrong' | { readonly retryAfterSeconds: number }
}

const sentenceOf = (problem: NonNullable<LoginView['problem']>): string => {
  if (problem === 'wrong') return 'That did not work. Check the user name and the password.'
  const minutes = Math.ceil(problem.retryAfterSeconds / 60)
  return `Too many attempts. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`
}

const alarm = (problem: LoginView['problem']): Html =>
  problem === undefined ? nothing : html`<p class="alarm" role="alert" id="problem">${sentenceOf(problem)}</p>`

/** A form of its own: the Enter key in a field would press the first button of its form. */
const choiceSection = ({ choices, action, csrf }: LoginView): Html =>
  choices.length === 0
    ? nothing
    : html`<form method="post" action="${action}/login">
<input type="hidden" name="csrf" value="${csrf}">
<fieldset><legend>As a user of this development service</legend>${choices.map(
        ({ username, tenant }) =>
          html`<button name="as" value="${username}">${username} <small>of ${tenant}</small></button>`,
      )}</fieldset></form>`

const tenantSection = (tenant: string): Html =>
  tenant === '' ? nothing : html`<dl class="facts"><dt>Tenant</dt><dd>${tenant}</dd></dl>`

const statusOf = (problem: LoginView['problem']): number => {
  if (problem === undefined) return 200
  return problem === 'wrong' ? 403 : 429
}

export const loginPage = (view: LoginView): Page => {
  const { application, tenant, action, csrf, goesTo, username = '', problem } = view
  const described = problem === undefined ? nothing : html` aria-invalid="true" aria-describedby="problem"`
  const [first, second] = username === '' ? [html` autofocus`, nothing] : [nothing, html` autofocus`]
  return {
    title: 'Sign in',
    status: statusOf(problem),
    goesTo,
    ...(typeof problem === 'object' ? { headers: { 'retry-after': String(problem.retryAfterSeconds) } } : {}),
    body: html`<h1>Sign in</h1>
<p>to continue to <strong>${application}</strong></p>
${tenantSection(tenant)}
${alarm(problem)}
${choiceSection(view)}
<form method="post" action="${action}/login">
<input type="hidden" name="csrf" value="${csrf}">
<label for="username">User name</label>
<input id="username" name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="63" required${first}${described}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="256" required${second}${described}>
<div class="buttons">
<button class="main">Sign in</button>
<button formaction="${action}/deny" formnovalidate>Cancel</button>
</div>
</form>
<p class="soft">Only your ledger sees your password; ${application} does not.</p>`,
  }
}
