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

type Part = string | Html | readonly Html[]

const markupOf = (part: Part): string => {
  if (typeof part === 'string') return escaped(part)
  return 'markup' in part ? part.markup : part.map(({ markup }) => markup).join('')
}

/**
 * A template of markup. Values are escaped, both between tags and within quotes; nested markup is inserted unchanged.
 */
export const html = (pieces: TemplateStringsArray, ...parts: readonly Part[]): Html => ({
  markup: pieces.map((piece, index) => `${piece}${markupOf(parts[index] ?? '')}`).join(''),
})

export const nothing: Html = { markup: '' }
