/** Text that may stand in a page as it is: made by `html` alone, which escapes everything that is put into it. */
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

/** A piece of a page. Values go in escaped, whether between tags or within quotes; a piece goes in as it is. */
export const html = (pieces: TemplateStringsArray, ...parts: readonly Part[]): Html => ({
  markup: pieces.map((piece, index) => `${piece}${markupOf(parts[index] ?? '')}`).join(''),
})

export const nothing: Html = { markup: '' }
