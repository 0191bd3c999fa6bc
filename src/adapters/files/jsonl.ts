import { exactJson } from '../../../projections/exactAmounts.ts'
import type { FileFormat } from '../../ports.ts'

const encoder = new TextEncoder()

/** JSON lines: one document per line, equal to the body of GET for the resource. */
export const jsonl: FileFormat = () => ({
  write: rows => encoder.encode(rows.map(row => `${exactJson(row)}\n`).join('')),
  end: () => new Uint8Array(),
})
