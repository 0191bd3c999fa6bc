import { html, type TemplateResult } from 'lit'
import { hrefOf } from './router.ts'

/** Texts for people, in the language of their browser; the exact value is what the mouse shows. */

const numbers = new Map<string, Intl.NumberFormat>()

/** `amount` in minor units. */
export const moneyText = (amount: number, currency: string, exponent: number): string => {
  const key = `${currency} ${exponent}`
  const digits = { minimumFractionDigits: exponent, maximumFractionDigits: exponent }
  const format = numbers.get(key) ?? new Intl.NumberFormat(undefined, { style: 'currency', currency, ...digits })
  numbers.set(key, format)
  return format.format(amount / 10 ** exponent)
}

export const money = (amount: number, currency: string, exponent: number): TemplateResult =>
  html`<span class="number" title="${amount} minor units of ${currency}">${moneyText(amount, currency, exponent)}</span>`

export const count = (value: number): string => new Intl.NumberFormat().format(value)

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

export const timeText = (at: string): string => dateTime.format(new Date(at))

/** A moment in the reader's time zone; UTC under the mouse. */
export const time = (at: string | null | undefined): TemplateResult | string =>
  at ? html`<time datetime=${at} title="${at.replace('T', ' ').replace('Z', ' UTC')}">${timeText(at)}</time>` : '–'

/** A text that a person wrote, in its own direction. */
export const personalText = (text: string | null): TemplateResult => html`<bdi class="text">${text ?? '–'}</bdi>`

export const date = (at: string): TemplateResult =>
  html`<time datetime=${at} title="${at} (UTC)">${day.format(new Date(at))}</time>`

/** `partially_paid` → `partially paid` */
export const words = (name: string): string => name.replaceAll('_', ' ')

/** `InvoiceApproved` → `Invoice approved` */
export const eventWords = (type: string): string =>
  type.replaceAll(/(?<=[a-z])([A-Z])/g, (_, letter: string) => ` ${letter.toLowerCase()}`)

export const duration = (seconds: number): string => {
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`
}

/** States by how they are shown. */
const TONES: Readonly<Record<string, 'good' | 'bad' | 'waiting'>> = {
  ...Object.fromEntries(
    ['paid', 'succeeded', 'completed', 'active', 'granted', 'balanced', 'live', 'ok'].map(name => [name, 'good']),
  ),
  ...Object.fromEntries(
    ['failed', 'stopped', 'denied', 'stalled', 'refused', 'unavailable'].map(name => [name, 'bad']),
  ),
  ...Object.fromEntries(
    ['draft', 'pending', 'running', 'paused', 'partially_paid', 'lagging', 'retrying'].map(name => [name, 'waiting']),
  ),
}

export const state = (name: string): TemplateResult =>
  html`<span class="state ${TONES[name] ?? 'plain'}">${words(name)}</span>`

const ID = /^(ord|inv|pay)_[0-9A-HJKMNP-TV-Z]{26}$/

/** An id, as a link to its case where there is one. */
export const id = (value: string | null | undefined): TemplateResult | string => {
  if (!value) return '–'
  return ID.test(value)
    ? html`<a class="id" href=${hrefOf('case', value)}>${value}</a>`
    : html`<span class="id">${value}</span>`
}

export const plural = (number: number, one: string): string => `${count(number)} ${one}${number === 1 ? '' : 's'}`
