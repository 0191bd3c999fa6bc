import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { createServer } from 'node:tls'
import { z } from 'zod'

/** What KurrentDB does by itself: TLS, with the certificate that the variables name, in front of the embedded event store. */

const settings = z.object({
  KURRENTDB_CERTIFICATE_FILE: z.string(),
  KURRENTDB_CERTIFICATE_PRIVATE_KEY_FILE: z.string(),
})
const { KURRENTDB_CERTIFICATE_FILE: cert, KURRENTDB_CERTIFICATE_PRIVATE_KEY_FILE: key } = settings.parse(process.env)

const server = createServer({ cert: readFileSync(cert), key: readFileSync(key), ALPNProtocols: ['h2'] }, client => {
  const store = connect({ host: '127.0.0.1', port: 2114, noDelay: true })
  client.pipe(store).pipe(client)
  client.on('error', () => undefined).once('close', () => store.destroy())
  store.on('error', () => undefined).once('close', () => client.destroy())
})
server.listen(2113)
