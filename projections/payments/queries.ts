import { byId, type PageRequest, pageOf, type Query } from '../page.ts'
import { type PaymentRow, payments } from './projection.ts'

export const paymentById = (id: string): Query<PaymentRow> => byId(payments, id)
export const paymentPage = (request: PageRequest): Query<PaymentRow> => pageOf(payments, request)
