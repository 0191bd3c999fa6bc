import type { Scope } from '../../../identity/principal.ts'
import { type Html, html, nothing } from './html.ts'
import type { Page } from './page.ts'

/** The sentence for each scope. A new scope is a compile error here. */
const SENTENCES: Readonly<Record<Scope, string>> = {
  'orders:read': 'See your orders',
  'orders:write': 'Create, change and cancel orders',
  'invoices:read': 'See your invoices',
  'invoices:write': 'Raise and void invoices',
  'invoice:approve': 'Approve invoices in your name, so that they can be paid',
  'payments:read': 'See your payments',
  'payments:write': 'Make payments in your name',
  'payments:settle': 'Settle deferred payments, or declare them failed',
  'payments:refund': 'Give money back for payments that were made',
  'exports:read': 'Download exports of what it may see',
  'exports:write': 'Order exports of what it may see',
  'events:read': 'Follow everything that happens to what it may see',
  'events:subscribe': 'Have those events delivered elsewhere',
  'ledger:read': 'See the accounts, the journal and the trial balance',
  'audit:read': 'See who was allowed and refused what',
  'keys:manage': 'Issue and revoke API keys',
  'projections:operate': 'Rebuild read models, as an operator',
  'audit:installation': 'See what operators did to the installation',
}

export type ConsentView = {
  readonly application: string
  readonly tenant: string
  readonly username: string
  /** Requested scopes that the user has. */
  readonly granted: readonly Scope[]
  /** Whether the application asks for the user's identity (`openid`). */
  readonly identifies: boolean
  /** Requested scopes that the user does not have. */
  readonly withheld: readonly Scope[]
  readonly action: string
  readonly csrf: string
  readonly goesTo: string
}

const listOf = (sentences: readonly string[], kind: string): Html =>
  html`<ul class="${kind}">${sentences.map(sentence => html`<li>${sentence}</li>`)}</ul>`

const grantedSection = ({ granted, identifies }: ConsentView): Html => {
  const sentences = granted.map(scope => SENTENCES[scope])
  return html`<h2>It will be able to</h2>${listOf(identifies ? ['Know your user name', ...sentences] : sentences, 'rights')}`
}

const withheldSection = ({ withheld }: ConsentView): Html =>
  withheld.length === 0
    ? nothing
    : html`<h2>Asked for as well, but you may not do this yourself</h2>${listOf(
        withheld.map(scope => SENTENCES[scope]),
        'rights withheld',
      )}`

const headingOf = ({ application, granted, withheld }: ConsentView): string => {
  if (granted.length > 0) return `Allow ${application} to act for you?`
  return withheld.length > 0 ? `${application} asks for more than you may do` : `${application} asks for nothing`
}

const button = (decision: string, label: string, kind: string): Html =>
  html`<button class="${kind}" name="decision" value="${decision}">${label}</button>`

export const consentPage = (view: ConsentView): Page => {
  const { tenant, username, granted, action, csrf, goesTo } = view
  const canGrant = granted.length > 0
  return {
    title: canGrant ? 'Allow access' : 'Nothing to allow',
    goesTo,
    body: html`<h1>${headingOf(view)}</h1>
<dl class="facts">
<dt>Signed in as</dt><dd>${username}</dd>
<dt>Tenant</dt><dd>${tenant}</dd>
<dt>Goes back to</dt><dd>${new URL(goesTo).host}</dd>
</dl>
${canGrant ? grantedSection(view) : nothing}
${withheldSection(view)}
<form method="post" action="${action}/consent">
<input type="hidden" name="csrf" value="${csrf}">
<div class="buttons">
${canGrant ? html`${button('allow', 'Allow', 'main')}${button('deny', 'Deny', '')}` : button('deny', 'Go back', 'main')}
</div>
</form>
<p class="soft">${canGrant ? 'For up to 8 hours, unless it is ended before. It never learns your password.' : 'Whoever administers your tenant can give you more rights.'}</p>`,
  }
}
