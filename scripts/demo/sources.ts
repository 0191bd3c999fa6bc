import { readFileSync } from 'node:fs'
import { type SourceInvoice, sourceSchema } from './plan.ts'

const FILE = new URL('chinook-invoices.json', import.meta.url)

/** The invoices that the demo's plan is made of. */
export const sources: readonly SourceInvoice[] = sourceSchema.parse(JSON.parse(readFileSync(FILE, 'utf8')))
