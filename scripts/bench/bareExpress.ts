/**
 * The HTTP reference server: Express verifies the token's signature on every request, then echoes a validated body or
 * reads one row by its primary key. Takes `--issuer URL`, and the database from DATABASE_URL. Prints its address and
 * `ready`.
 */

import { createPublicKey, type JsonWebKey } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import express, { type NextFunction, type Request, type Response } from 'express'
import jwt from 'jsonwebtoken'
import { Pool } from 'pg'
import { z } from 'zod'

const BEARER = 'Bearer '

const payment = z.strictObject({
  invoice_id: z.string().regex(/^inv_[0-9A-HJKMNP-TV-Z]{26}$/),
  amount: z.int().min(1),
  currency: z.string().length(3),
  reference: z.string().max(500).nullable().default(null),
  settlement: z.enum(['immediate', 'deferred']).default('immediate'),
  metadata: z.record(z.string(), z.string()).default({}),
})

const { values } = parseArgs({ options: { issuer: { type: 'string', default: '' } } })
const { issuer } = values
const jwks = (await (await fetch(`${issuer}/jwks`)).json()) as { keys: readonly JsonWebKey[] }
const [jwk] = jwks.keys
if (jwk === undefined) throw new Error(`${issuer} publishes no key.`)
const key = createPublicKey({ key: jwk, format: 'jwk' })
const pool = new Pool({ connectionString: process.env['DATABASE_URL'], max: 10 })

const authenticated = (req: Request, res: Response, next: NextFunction): void => {
  try {
    jwt.verify((req.headers.authorization ?? '').slice(BEARER.length), key, { algorithms: ['ES256'], issuer })
  } catch {
    res.status(401).end()
    return
  }
  next()
}

const app = express()
app.post('/payments', authenticated, express.json(), (req, res) => {
  const parsed = payment.safeParse(req.body)
  if (parsed.success) res.status(201).json(parsed.data)
  else res.status(400).json(parsed.error.issues)
})
app.get('/payments/:id', authenticated, async (req, res) => {
  const text = 'select * from payments_v1 where id = $1'
  const { rows } = await pool.query({ name: 'by_id', text, values: [req.params['id']] })
  if (rows.length === 0) res.status(404).end()
  else res.json(rows[0])
})
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\nready\n`)
})
