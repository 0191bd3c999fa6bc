import { Task } from '@lit/task'
import { html, nothing, type PropertyValues } from 'lit'
import { type Answer, API_VERSION, curlOf, type Input, requestAny } from '../api.ts'
import { resolved, type Schema, type Schemas, schemaField } from '../elements/schemaFields.ts'
import { copyButton, define, failure, shown, View } from '../elements/view.ts'
import { hrefOf, place } from '../router.ts'
import { may, user } from '../session.ts'

/** The commands of the API, by forms that are made from its own description. */

type Parameter = { readonly $ref?: string; readonly name?: string; readonly in?: string; readonly schema?: Schema }
type Described = {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly 'x-credentials': readonly string[]
  readonly security: readonly { readonly oauth?: readonly string[] }[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>
  }
}
type Contract = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: { readonly schemas: Schemas }
}
type Command = Described & { readonly method: string; readonly path: string }
type Commands = { readonly commands: readonly Command[]; readonly schemas: Schemas }

/** Read models are rebuilt on the page of operations, where their state is. */
const TAGS_LEFT_OUT = new Set(['Projections'])

let contract: Promise<Commands> | undefined

const readContract = async (): Promise<Commands> => {
  const response = await fetch('/openapi.json', { headers: { 'API-Version': API_VERSION } })
  const { paths, components } = (await response.json()) as Contract
  const commands = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method, { tags }]) => method !== 'get' && !tags.some(tag => TAGS_LEFT_OUT.has(tag)))
      .map(([method, described]) => ({ ...described, method: method.toUpperCase(), path })),
  )
  return { commands, schemas: components.schemas }
}

const commandsOf = (): Promise<Commands> => {
  contract ??= readContract()
  contract.catch(() => (contract = undefined))
  return contract
}

const isPermitted = ({ security, ...terms }: Command): boolean =>
  terms['x-credentials'].includes('user') && security.some(({ oauth }) => oauth !== undefined && may(...oauth))

const takes = ({ parameters = [] }: Command, header: string): boolean =>
  parameters.some(({ $ref = '' }) => $ref.split('/').at(-1)?.split('.')[0] === header)

const pathNamesOf = ({ path }: Command): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

const bodyOf = ({ requestBody }: Command): Schema | undefined => Object.values(requestBody?.content ?? {})[0]?.schema

const hasMembers = (schema: Schema | undefined): boolean =>
  schema !== undefined && (schema.type !== 'object' || Object.keys(schema.properties ?? {}).length > 0)

type Outcome = { readonly answer?: Answer<unknown>; readonly error?: unknown }

export class CommandForm extends View {
  static override properties = {
    command: { attribute: false },
    schemas: { attribute: false },
    body: { state: true },
    path: { state: true },
    etag: { state: true },
    key: { state: true },
    creator: { state: true },
    outcome: { state: true },
    isSending: { state: true },
  }
  declare command: Command
  declare schemas: Schemas
  declare private body: unknown
  declare private path: Readonly<Record<string, string>>
  declare private etag: string
  declare private key: string
  declare private creator: string | undefined
  declare private outcome: Outcome | undefined
  declare private isSending: boolean

  constructor() {
    super()
    this.key = crypto.randomUUID()
    this.etag = ''
    this.path = {}
    this.isSending = false
  }

  /** What the link to this form knows is filled in. */
  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has('command')) return
    const { query } = place()
    this.path = Object.fromEntries(pathNamesOf(this.command).map(name => [name, query.get(name) ?? '']))
    const { properties = {} } = resolved(bodyOf(this.command) ?? {}, this.schemas)
    const known = Object.entries(properties).flatMap(([name, { type }]) => {
      const text = query.get(name)
      return text === null ? [] : [[name, type === 'integer' ? Number(text) : text] as const]
    })
    Object.assign(this, {
      body: known.length > 0 ? Object.fromEntries(known) : undefined,
      outcome: undefined,
      etag: '',
      creator: undefined,
    })
    if (takes(this.command, 'If-Match') && Object.values(this.path).every(value => value !== ''))
      void this.readVersion()
  }

  private input(): Input {
    const hasBody = this.command.requestBody !== undefined
    return {
      path: this.path,
      ...(hasBody ? { body: this.body ?? {} } : {}),
      headers: {
        ...(takes(this.command, 'Idempotency-Key') ? { 'Idempotency-Key': this.key } : {}),
        ...(takes(this.command, 'If-Match') ? { 'If-Match': this.etag } : {}),
      },
    }
  }

  private operation(): string {
    return `${this.command.method} ${this.command.path}`
  }

  /** The version that the command is about to change: its ETag is the condition. */
  private readonly readVersion = async (): Promise<void> => {
    try {
      const path = this.command.path.replace(/:\w+$/, '')
      const { etag, data } = await requestAny<{ readonly created_by?: string }>(`GET ${path}`, { path: this.path })
      this.etag = etag
      this.creator = data.created_by
    } catch (error) {
      this.outcome = { error }
    }
  }

  private readonly submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    this.isSending = true
    this.outcome = undefined
    try {
      this.outcome = { answer: await requestAny(this.operation(), this.input()) }
    } catch (error) {
      this.outcome = { error }
    } finally {
      this.isSending = false
    }
  }

  private pathField(name: string): unknown {
    return html`<label><span>${name}</span><input required .value=${this.path[name] ?? ''} maxlength="100" autocomplete="off" @change=${({
      target,
    }: Event) => {
      this.path = { ...this.path, [name]: (target as HTMLInputElement).value.trim() }
      if (takes(this.command, 'If-Match')) void this.readVersion()
    }} /></label>`
  }

  private conditions(): unknown {
    return html`${
      takes(this.command, 'If-Match')
        ? html`<label><span>If-Match</span><input required .value=${this.etag} readonly /><small>The version that you change: if another one changes it first, yours is refused.</small></label>`
        : nothing
    }${
      takes(this.command, 'Idempotency-Key')
        ? html`<label><span>Idempotency key</span><input required .value=${this.key} maxlength="255" @change=${({
            target,
          }: Event) => {
            this.key = (target as HTMLInputElement).value
          }} /><small>Sent again with the same key, the same request has one effect. Another intent needs another key.</small></label>
          <div><button type="button" @click=${() => {
            this.key = crypto.randomUUID()
          }}>New key</button></div>`
        : nothing
    }`
  }

  private fourEyes(): unknown {
    if (this.command.operationId !== 'approve_invoice') return nothing
    return html`<p>Four eyes: from the amount on that the policy of your tenant sets, the creator of an invoice may not approve it.
      ${this.creator === undefined ? nothing : html`This one was created by <strong>${this.creator}</strong>; you are <strong>${user()?.subject}</strong>.`}</p>`
  }

  private answer(): unknown {
    const { answer, error } = this.outcome ?? {}
    if (error !== undefined) return failure(error)
    if (answer === undefined) return html`<p class="empty">The answer appears here as it came.</p>`
    const { id } = (answer.data ?? {}) as { readonly id?: string }
    const headers = ['location', 'etag', 'idempotent-replayed', 'ledger-position', 'x-correlation-id']
    return html`<p role="status"><span class="state good">${answer.status}</span>
        ${id && /^(ord|inv|pay)_/.test(id) ? html`<a href=${hrefOf('case', id)}>See the case</a>` : nothing}</p>
      <pre tabindex="0">${headers.flatMap(name => (answer.headers.has(name) ? [`${name}: ${answer.headers.get(name)}\n`] : []))}
${answer.text}</pre>`
  }

  protected override render(): unknown {
    const body = bodyOf(this.command)
    return html`<h2>${this.command.summary}</h2>
      <div class="form">
        <form class="fields" @submit=${this.submit}>
          ${this.fourEyes()} ${pathNamesOf(this.command).map(name => this.pathField(name))}
          ${
            body && hasMembers(body)
              ? schemaField({
                  label: '',
                  path: '',
                  schema: body,
                  schemas: this.schemas,
                  isRequired: true,
                  value: this.body,
                  set: value => {
                    this.body = value
                  },
                })
              : nothing
          }
          ${this.conditions()}
          <div class="tools"><button class="main" ?disabled=${this.isSending}>Send</button>${copyButton(() => curlOf(this.operation(), this.input()), 'Copy as curl')}</div>
          <small>${this.command.description}</small>
        </form>
        <section aria-label="Answer" aria-live="polite">${this.answer()}</section>
      </div>`
  }
}

define('command-form', CommandForm)

export class DoPage extends View {
  static override properties = { operation: {} }
  declare operation: string

  private readonly found = new Task(this, { args: () => [], task: commandsOf })

  private list({ commands, schemas }: Commands): unknown {
    const permitted = commands.filter(isPermitted)
    const chosen = permitted.find(({ operationId }) => operationId === this.operation)
    if (chosen)
      return html`<p><a href=${hrefOf('do')}>All commands</a></p><command-form .command=${chosen} .schemas=${schemas}></command-form>`
    if (this.operation !== '')
      return html`<p>Your token does not permit ${this.operation}. <a href=${hrefOf('do')}>All commands</a></p>`
    if (permitted.length === 0) return html`<p class="empty">Your token permits no command.</p>`
    const groups = Map.groupBy(permitted, ({ tags: [tag = ''] }) => tag)
    return [...groups].map(
      ([tag, ones]) =>
        html`<section><h2>${tag}</h2><ul>${ones.map(
          ({ operationId, summary }) => html`<li><a href=${hrefOf('do', operationId)}>${summary}</a></li>`,
        )}</ul></section>`,
    )
  }

  protected override render(): unknown {
    return html`<h1>Do</h1>${shown(this.found, commands => this.list(commands))}`
  }
}

define('do-page', DoPage)
