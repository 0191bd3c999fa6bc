import { readFileSync } from 'node:fs'
import { type SourceInvoice, sourceSchema } from '../../../scripts/demo/plan.ts'

const FILE = new URL('../../../scripts/demo/chinook-invoices.json', import.meta.url)

export const sources: readonly SourceInvoice[] = sourceSchema.parse(JSON.parse(readFileSync(FILE, 'utf8')))
