/**
 * The reference server for event sourcing on Postgres: Express with Emmett appends the body as one event to a stream of
 * its own, without authentication and without idempotency. Takes the database from DATABASE_URL. Prints its address and
 * `ready`.
 */

import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { getPostgreSQLEventStore } from '@event-driven-io/emmett-postgresql'
import type { Event } from '@event-driven-io/emmett'
import express from 'express'

type PaymentMade = Event<'PaymentMade', Record<string, unknown>>

const store = getPostgreSQLEventStore(process.env['DATABASE_URL'] ?? '')
await store.schema.migrate()

const app = express()
app.post('/payments', express.json(), async (req, res) => {
  const id = randomUUID()
  const event: PaymentMade = { type: 'PaymentMade', data: req.body as Record<string, unknown> }
  await store.appendToStream(`payment-${id}`, [event])
  res.status(201).json({ id, ...event.data })
})
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\nready\n`)
})
