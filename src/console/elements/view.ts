import type { Task } from '@lit/task'
import { html, LitElement, nothing, type TemplateResult } from 'lit'
import { ApiError } from '../api.ts'
import { onPlace } from '../router.ts'
import { signInAgain } from '../session.ts'

/** What all elements share: they render into the page itself, and show loading and failure in one way. */

export class View extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this
  }
}

export class PlacedView extends View {
  private leave: (() => void) | undefined

  override connectedCallback(): void {
    super.connectedCallback()
    this.leave = onPlace(() => this.requestUpdate())
    this.requestUpdate()
  }

  /** The change of address that removes an element asks it for an update too, which would begin its work anew. */
  protected override shouldUpdate(): boolean {
    return this.isConnected
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.leave?.()
  }
}

export const define = (name: string, element: CustomElementConstructor): void => {
  if (customElements.get(name) === undefined) customElements.define(name, element)
}

export const loading = html`<p class="loading" role="status">Loading…</p>`

const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError({ title: 'The console failed', detail: error instanceof Error ? error.message : String(error) })

/** A failure with its code, its remedy and the id by which the logs know it. */
export const failure = (thrown: unknown, retry?: () => void): TemplateResult => {
  const error = asApiError(thrown)
  return html`<div class="problem" role="alert">
    <p><strong>${error.message}</strong> <a class="code" href="/problems/${error.code}" target="_blank" rel="noreferrer">${error.code}</a></p>
    ${error.detail === '' ? nothing : html`<p>${error.detail}</p>`}
    ${error.violations.map(words => html`<p class="mono">${words}</p>`)}
    <p>${error.remedy}</p>
    ${error.correlationId === '' ? nothing : html`<p class="soft">Correlation id <code>${error.correlationId}</code></p>`}
    ${
      error.code === 'token_expired'
        ? html`<button @click=${() => signInAgain().then(retry)}>Sign in again</button>`
        : retry && html`<button @click=${retry}>Try again</button>`
    }
  </div>`
}

type Showing = {
  /** The value before is about something else, and is not shown while the new one is read. */
  readonly isOfSubject?: boolean
}

/** The value of a task: kept while a newer one of the same is read, so that a page does not flicker. */
export const shown = <T>(
  task: Task<readonly unknown[], T>,
  complete: (value: T) => unknown,
  { isOfSubject = false }: Showing = {},
): unknown => {
  const present = (): unknown => (task.value === undefined || isOfSubject ? loading : complete(task.value))
  return task.render({
    initial: () => loading,
    pending: present,
    complete,
    error: error => failure(error, () => void task.run()),
  })
}

export const copyButton = (text: () => string, label: string): TemplateResult =>
  html`<button
    type="button"
    class="quiet"
    @click=${async ({ currentTarget }: Event) => {
      const button = currentTarget as HTMLButtonElement
      await navigator.clipboard.writeText(text())
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = label), 1_500)
    }}
    .textContent=${label}
  ></button>`

/** JSON as it came, to open and to copy. */
export const raw = (value: unknown, label = 'Raw JSON'): TemplateResult => {
  const text = (): string => JSON.stringify(value, undefined, 2)
  return html`<details class="raw">
    <summary>${label}</summary>
    ${copyButton(text, 'Copy')}
    <pre tabindex="0">${text()}</pre>
  </details>`
}
