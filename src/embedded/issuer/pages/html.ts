/** Markup that needs no escaping. Only `html` creates it, which escapes every inserted value. */
export type Html = { readonly markup: string }

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, character => ESCAPES[character] ?? '')

type Interpolated = string | Html | readonly Html[]

const markupOf = (value: Interpolated): string => {
  if (typeof value === 'string') return escaped(value)
  return 'markup' in value ? value.markup : value.map(({ markup }) => markup).join('')
}

/** Values are escaped, between tags and within quotes; nested markup is inserted unchanged. */
export const html = (pieces: TemplateStringsArray, ...values: readonly Interpolated[]): Html => ({
  markup: pieces.map((piece, index) => `${piece}${markupOf(values[index] ?? '')}`).join(''),
})

export const nothing: Html = { markup: '' }
