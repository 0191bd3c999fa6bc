import { byId, type PageRequest, pageOf, type Query } from '../page.ts'
import { type InvoiceRow, invoices } from './projection.ts'

export const invoiceById = (id: string): Query<InvoiceRow> => byId(invoices, id)
export const invoicePage = (request: PageRequest): Query<InvoiceRow> => pageOf(invoices, request)
