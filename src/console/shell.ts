import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import { define, failure, loading, PlacedView } from './elements/view.ts'
import { go, hrefOf, place } from './router.ts'
import { may, onSession, sessionState, signIn, signInAgain, signOut, type Start, user } from './session.ts'
import { settings } from './settings.ts'

/** The frame of every page: where one is, who one is, and for whom. */

type PageOf = {
  readonly label: string
  /** Any of these scopes makes the page useful. */
  readonly scopes: readonly string[]
  readonly load: () => Promise<unknown>
  readonly render: (subject: string) => TemplateResult
}

const READ = ['orders:read', 'invoices:read', 'payments:read']

const PAGES: Readonly<Record<string, PageOf>> = {
  '': {
    label: 'Overview',
    scopes: [],
    load: () => import('./pages/overview.ts'),
    render: () => html`<overview-page></overview-page>`,
  },
  case: {
    label: 'Case',
    scopes: READ,
    load: () => import('./pages/case.ts'),
    render: subject => html`<case-page .subject=${subject}></case-page>`,
  },
  money: {
    label: 'Money',
    scopes: ['ledger:read', 'invoices:read', 'payments:read'],
    load: () => import('./pages/money.ts'),
    render: () => html`<money-page></money-page>`,
  },
  facts: {
    label: 'Facts',
    scopes: ['events:read', 'events:subscribe'],
    load: () => import('./pages/facts.ts'),
    render: subject => html`<facts-page .subject=${subject}></facts-page>`,
  },
  operations: {
    label: 'Operations',
    scopes: ['exports:read', 'projections:operate', 'audit:installation'],
    load: () => import('./pages/operations.ts'),
    render: () => html`<operations-page></operations-page>`,
  },
  audit: {
    label: 'Audit',
    scopes: ['audit:read'],
    load: () => import('./pages/audit.ts'),
    render: subject => html`<audit-page .subject=${subject}></audit-page>`,
  },
  do: {
    label: 'Do',
    scopes: [],
    load: () => import('./pages/do.ts'),
    render: subject => html`<do-page .operation=${subject}></do-page>`,
  },
}

const isPermitted = ({ scopes }: PageOf): boolean => scopes.length === 0 || scopes.some(scope => may(scope))

export class LedgerConsole extends PlacedView {
  static override properties = { began: { attribute: false }, loaded: { state: true }, missing: { state: true } }
  declare began: Start | undefined
  declare private loaded: ReadonlySet<string>
  /** Why the modules of a page could not be loaded. */
  declare private missing: unknown

  constructor() {
    super()
    this.loaded = new Set()
    onSession(() => this.requestUpdate())
    document.addEventListener('keydown', event => this.focusSearch(event))
  }

  private focusSearch(event: KeyboardEvent): void {
    const { target, key } = event
    const isTyping = target instanceof Element && target.matches('input, textarea, select, [contenteditable]')
    if (key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    this.querySelector<HTMLInputElement>('header input')?.focus()
  }

  private readonly search = (event: SubmitEvent): void => {
    event.preventDefault()
    const input = (event.target as HTMLFormElement).querySelector('input')
    const text = input?.value.trim() ?? ''
    if (input === null || text === '') return
    go(hrefOf('case', text))
    input.value = ''
    input.blur()
  }

  private current(): PageOf | undefined {
    return PAGES[place().page]
  }

  protected override updated(_: PropertyValues): void {
    const { page } = place()
    const current = this.current()
    if (sessionState() === 'signed-out' || current === undefined || this.loaded.has(page)) return
    if (this.missing !== undefined) return
    current.load().then(
      () => {
        this.loaded = new Set([...this.loaded, page])
      },
      (error: unknown) => {
        this.missing = error
      },
    )
  }

  private identity(): unknown {
    const known = user()
    if (known === undefined) return nothing
    return html`<span class="who"><strong>${known.subject}</strong> of <strong>${known.tenant}</strong></span>
      <button type="button" class="quiet" @click=${() => signOut()}>Sign out</button>`
  }

  private header(): unknown {
    const isProduction = settings.environment === 'production'
    const { page } = place()
    return html`<a class="skip" href="#content" @click=${(event: Event) => {
      event.preventDefault()
      this.querySelector<HTMLElement>('main')?.focus()
    }}>Skip to the content</a>
    <header class=${isProduction ? 'production' : ''}>
      <div class="bar">
        <a class="brand" href=${hrefOf('')}>Payment ledger</a>
        <span class="environment">${settings.environment}</span>
        ${
          user() === undefined
            ? nothing
            : html`<form role="search" @submit=${this.search}>
                <input type="search" aria-label="Find by any id or reference" placeholder="Find by any id or reference  ( / )" maxlength="500" />
              </form>`
        }
        ${this.identity()}
      </div>
      ${
        user() === undefined
          ? nothing
          : html`<nav aria-label="Pages">
              ${Object.entries(PAGES)
                .filter(([, one]) => isPermitted(one))
                .map(
                  ([name, { label }]) =>
                    html`<a href=${hrefOf(name)} aria-current=${name === page ? 'page' : nothing}>${label}</a>`,
                )}
            </nav>`
      }
    </header>`
  }

  private expiredNotice(): unknown {
    if (sessionState() !== 'expired') return nothing
    return html`<div class="notice" role="alert">Your session has expired. This page stays as it is.
      <button type="button" @click=${() => signInAgain()}>Sign in again</button></div>`
  }

  private content(): unknown {
    if (sessionState() === 'signed-out') return this.entrance()
    const current = this.current()
    const { page, subject } = place()
    document.title = `${current?.label ?? 'Not found'} · Payment ledger`
    if (current === undefined)
      return html`<h1>There is no such page</h1><p><a href=${hrefOf('')}>To the overview</a></p>`
    if (!isPermitted(current))
      return html`<h1>${current.label}</h1><p>Your token has none of the scopes of this page: ${current.scopes.join(', ')}.</p>`
    if (this.loaded.has(page)) return current.render(subject)
    // The service may have been replaced by one with other modules.
    return this.missing === undefined ? loading : failure(this.missing, () => location.reload())
  }

  private entrance(): unknown {
    if (this.began === undefined) return loading
    if (settings.clientId === '')
      return html`<h1>The console has no client</h1><p>Register a public client at ${settings.issuer}, and set CONSOLE_CLIENT_ID
        to its id (scripts/ledger/OPERATING.md).</p>`
    const failed = typeof this.began === 'object' ? this.began.failed : undefined
    return html`<div class="entrance"><h1>${failed === undefined ? 'You are signed out' : 'Signing in did not work'}</h1>
      ${failed === undefined ? nothing : html`<p role="alert">${failed}</p>`}
      <p>The console shows what your account may see, and nothing is kept in this browser.</p>
      <button type="button" class="main" @click=${() => signIn()}>Sign in</button></div>`
  }

  protected override render(): unknown {
    return html`${this.header()}${this.expiredNotice()}<main id="content" tabindex="-1">${this.content()}</main>`
  }
}

define('ledger-console', LedgerConsole)
