import { byId, type PageRequest, pageOf, type Query } from '../page.ts'
import { type OrderRow, orders } from './projection.ts'

export const orderById = (id: string): Query<OrderRow> => byId(orders, id)
export const orderPage = (request: PageRequest): Query<OrderRow> => pageOf(orders, request)
