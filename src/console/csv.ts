/**
 * CSV by RFC 4180. A text that a spreadsheet would calculate, or that begins with an apostrophe, gets an apostrophe in
 * front, as in the exports of the service: = + - @ after white space, control or format characters, and their variants.
 */
const CALCULATED = /^(?:'|[\s\p{Cc}\p{Cf}]*[=+\-@\t\r＝＋－＠﹦﹢﹣﹫−])/u
const SPECIAL = /[",\r\n]/

export type Cell = string | number | null | undefined

const cellOf = (value: Cell): string => {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number') return String(value)
  const text = CALCULATED.test(value) ? `'${value}` : value
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvOf = (names: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [names, ...rows].map(row => `${row.map(cellOf).join(',')}\r\n`).join('')

export const download = (name: string, content: Blob): void => {
  const url = URL.createObjectURL(content)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

export const downloadCsv = (name: string, names: readonly string[], rows: readonly (readonly Cell[])[]): void =>
  download(`${name}.csv`, new Blob([csvOf(names, rows)], { type: 'text/csv' }))
