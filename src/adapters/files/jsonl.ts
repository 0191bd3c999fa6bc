import type { FileFormat } from '../../ports.ts'

const encoder = new TextEncoder()

/** One JSON document per line, each the very view that a GET of the resource answers with. */
export const jsonl: FileFormat = () => ({
  write: rows => encoder.encode(rows.map(row => `${JSON.stringify(row)}\n`).join('')),
  end: () => new Uint8Array(),
})
