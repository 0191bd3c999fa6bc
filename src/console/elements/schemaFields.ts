import { html, nothing } from 'lit'
import { words } from '../format.ts'

/** Fields for a value of a JSON schema, as the OpenAPI document has it. A field that is left empty is absent. */

export type Schema = {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly description?: string
}

export type Schemas = Readonly<Record<string, Schema>>

/** One field: its value, and what is told when it changes. */
export type Field = {
  readonly label: string
  /** The names that lead to it from the whole value, each with a dot before it. */
  readonly path: string
  readonly schema: Schema
  readonly schemas: Schemas
  readonly isRequired: boolean
  readonly value: unknown
  readonly set: (value: unknown) => void
}

export const resolved = (schema: Schema, schemas: Schemas): Schema => {
  const { $ref, ...own } = schema
  const target = $ref === undefined ? undefined : schemas[$ref.slice($ref.lastIndexOf('/') + 1)]
  return target === undefined ? schema : { ...resolved(target, schemas), ...own }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The alternatives but null, which is a field that is left empty. */
const alternativesOf = ({ anyOf, oneOf = anyOf }: Schema, schemas: Schemas): readonly Schema[] =>
  (oneOf ?? []).map(one => resolved(one, schemas)).filter(({ type }) => type !== 'null')

const constantsOf = ({ properties = {} }: Schema): readonly (readonly [string, unknown])[] =>
  Object.entries(properties).flatMap(([name, schema]) => ('const' in schema ? [[name, schema.const] as const] : []))

/** Whether the value can be meant for the alternative. */
const fits = (schema: Schema, value: unknown): boolean => {
  if ('const' in schema) return value === schema.const
  if (schema.enum) return typeof value === 'string' && schema.enum.includes(value)
  if (schema.type === 'integer') return typeof value === 'number'
  if (schema.type !== 'object') return typeof value === schema.type
  if (!isObject(value)) return false
  return (
    constantsOf(schema).every(([name, constant]) => value[name] === constant) &&
    (schema.required ?? []).every(name => name in value)
  )
}

/** A value of the alternative with nothing filled in. */
const beginningOf = (schema: Schema): unknown => {
  if ('const' in schema) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.type === 'object') {
    const empty = Object.fromEntries((schema.required ?? []).map(name => [name, '']))
    return { ...empty, ...Object.fromEntries(constantsOf(schema)) }
  }
  return schema.type === 'integer' ? 0 : ''
}

const nameOf = (schema: Schema): string => {
  if ('const' in schema) return String(schema.const)
  if (schema.enum) return schema.enum.join(' or ')
  const constants = constantsOf(schema).map(([, constant]) => String(constant))
  if (constants.length > 0) return constants.join(' ')
  return Object.keys(schema.properties ?? {}).join(', ') || (schema.type === 'integer' ? 'a number' : 'a text')
}

/** The description is beside the label, which is the name of the field alone. */
const labelled = ({ label, path, schema, isRequired }: Field, input: (describedBy: unknown) => unknown): unknown => {
  const id = `about${path}`
  return html`<div>
    <label><span>${words(label)}${isRequired ? nothing : html` <small>optional</small>`}</span>${input(schema.description ? id : nothing)}</label>
    ${schema.description ? html`<small id=${id}>${schema.description}</small>` : nothing}
  </div>`
}

const textOf = ({ target }: Event): string => (target as HTMLInputElement).value

const alternatives = (field: Field, choices: readonly Schema[]): unknown => {
  const chosen = choices.findIndex(choice => fits(choice, field.value))
  const choice = choices[chosen]
  const change = (event: Event): void => {
    const next = choices[Number(textOf(event))]
    field.set(next && beginningOf(next))
  }
  return html`<fieldset><legend>${words(field.label)}</legend>
    ${labelled(
      { ...field, label: 'kind', path: `${field.path}.kind` },
      describedBy => html`<select @change=${change} aria-describedby=${describedBy} ?required=${field.isRequired}><option value="" ?selected=${chosen === -1}>choose</option>
        ${choices.map((one, index) => html`<option value=${index} ?selected=${index === chosen}>${nameOf(one)}</option>`)}</select>`,
    )}
    ${choice && !('const' in choice) ? schemaField({ ...field, label: choice.type === 'object' ? '' : 'value', schema: choice, isRequired: true }) : nothing}
  </fieldset>`
}

const members = (field: Field): unknown => {
  const { schema, schemas, value, set } = field
  const object = isObject(value) ? value : {}
  const change = (name: string) => (next: unknown) => {
    const { [name]: _, ...others } = object
    const changed = next === undefined ? others : { ...others, [name]: next }
    set(Object.keys(changed).length === 0 && !field.isRequired ? undefined : changed)
  }
  const fields = Object.entries(schema.properties ?? {})
    .filter(([, member]) => !('const' in member))
    .map(([name, member]) =>
      schemaField({
        label: name,
        path: `${field.path}.${name}`,
        schema: resolved(member, schemas),
        schemas,
        isRequired: field.isRequired && (schema.required?.includes(name) ?? false),
        value: object[name],
        set: change(name),
      }),
    )
  return field.label === '' ? fields : html`<fieldset><legend>${words(field.label)}</legend>${fields}</fieldset>`
}

const pairs = (field: Field): unknown => {
  const change = (event: Event): void => {
    const input = event.target as HTMLTextAreaElement
    try {
      field.set(input.value.trim() === '' ? undefined : JSON.parse(input.value))
      input.setCustomValidity('')
    } catch {
      input.setCustomValidity('This is not JSON.')
    }
  }
  const text = field.value === undefined ? '' : JSON.stringify(field.value)
  return labelled(
    field,
    describedBy =>
      html`<textarea aria-describedby=${describedBy} @change=${change} placeholder='{"name": "value"}' .value=${text}></textarea>`,
  )
}

const items = (field: Field): unknown => {
  const { label, schema, schemas, value, set } = field
  const item = resolved(schema.items ?? {}, schemas)
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  if (item.enum)
    return html`<fieldset><legend>${words(label)}</legend>${item.enum.map(
      name =>
        html`<label class="option"><span><input type="checkbox" .checked=${list.includes(name)} @change=${() =>
          set(list.includes(name) ? list.filter(one => one !== name) : [...list, name])} /> ${name}</span></label>`,
    )}</fieldset>`
  return html`<fieldset><legend>${words(label)}</legend>
    ${list.map(
      (one, index) =>
        html`${schemaField({
          label: `${label.replace(/s$/, '')} ${index + 1}`,
          path: `${field.path}.${index}`,
          schema: item,
          schemas,
          isRequired: true,
          value: one,
          set: next => set(list.with(index, next)),
        })}<div><button type="button" @click=${() => set(list.toSpliced(index, 1))}>Remove ${label.replace(/s$/, '')} ${index + 1}</button></div>`,
    )}
    <div><button type="button" @click=${() => set([...list, beginningOf(item)])}>Add ${label.replace(/s$/, '')}</button></div></fieldset>`
}

const isTime = ({ format, description = '' }: Schema): boolean =>
  format === 'date-time' || description.startsWith('A time by RFC 3339')

const scalar = (field: Field): unknown => {
  const { schema, value, set, isRequired } = field
  const isNumber = schema.type === 'integer'
  const change = (event: Event): void => {
    const text = textOf(event)
    const isRefused = text !== '' && schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(text)
    ;(event.target as HTMLInputElement).setCustomValidity(isRefused ? `This has another form: ${schema.pattern}` : '')
    if (text === '') set(undefined)
    else if (isNumber) set(Number(text))
    else set(isTime(schema) ? new Date(text).toISOString() : text)
  }
  const type = isNumber ? 'number' : isTime(schema) ? 'datetime-local' : schema.format === 'date' ? 'date' : 'text'
  const shown = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  return labelled(
    field,
    describedBy => html`<input type=${type} aria-describedby=${describedBy} ?required=${isRequired} .value=${isTime(schema) ? '' : shown} @change=${change}
      min=${schema.minimum ?? nothing} max=${schema.maximum ?? nothing} maxlength=${schema.maxLength ?? nothing}
      autocomplete="off" spellcheck="false" />`,
  )
}

export const schemaField = (field: Field): unknown => {
  const schema = resolved(field.schema, field.schemas)
  const own = { ...field, schema }
  const choices = alternativesOf(schema, field.schemas)
  if (choices.length > 1) return alternatives(own, choices)
  const [only] = choices
  if (only)
    return schemaField({
      ...own,
      schema: { ...only, ...(schema.description ? { description: schema.description } : {}) },
    })
  const { enum: names } = schema
  if (names)
    return labelled(
      own,
      describedBy => html`<select aria-describedby=${describedBy} ?required=${field.isRequired} @change=${(event: Event) => field.set(textOf(event) || undefined)}><option value="">choose</option>
        ${names.map(name => html`<option value=${name} ?selected=${name === field.value}>${name}</option>`)}</select>`,
    )
  if (schema.type === 'boolean')
    return labelled(
      own,
      describedBy =>
        html`<input type="checkbox" aria-describedby=${describedBy} .checked=${field.value === true} @change=${() => field.set(field.value === true ? undefined : true)} />`,
    )
  if (schema.type === 'array') return items(own)
  if (schema.type === 'object') return schema.properties ? members(own) : pairs(own)
  return scalar(own)
}
