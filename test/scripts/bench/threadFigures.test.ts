import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { newDatabase } from '../../support/postgres.ts'
import { temporaryDirectory } from '../../support/service.ts'

const COUNTERS = new URL('../../../scripts/bench/threadFigures.ts', import.meta.url).href
const FRAMING = new URL('../../../src/grpc/framing.ts', import.meta.url).href
const PG = import.meta.resolve('pg')
const PATH = '/streams/Read'

/** Counts while it sends three messages in two writes, gets two messages back, and executes three statements. */
const PROGRAM = `
import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import pg from '${PG}'
import { countThread } from '${COUNTERS}'
import { framed } from '${FRAMING}'
const counter = countThread()
const message = new Uint8Array(10)
const server = createServer().on('stream', stream => {
  stream.respond()
  stream.resume().on('end', () => stream.end(framed([message, message])))
})
await once(server.listen(0, '127.0.0.1'), 'listening')
const session = connect('http://127.0.0.1:' + server.address().port)
const database = new pg.Client({ connectionString: process.argv[2] })
await database.connect()
await database.query('select 0')
counter.start()
const call = session.request({ ':method': 'POST', ':path': '${PATH}' })
for (const messages of [[message, message], [message]])
  await new Promise(done => call.write(framed(messages), done))
call.end()
await once(call.resume(), 'end')
await database.query('select 1')
await database.query({ text: 'select $1::int', values: [2] })
await database.query({ text: 'select $1::int', values: [3] })
console.log(JSON.stringify(counter.stop()))
await database.end()
session.close()
server.close()
`

describe('the counts of a thread', () => {
  it('are of its gRPC calls by method and of its statements by text, since the start of the phase', async () => {
    const program = join(await temporaryDirectory(), 'program.mjs')
    await writeFile(program, PROGRAM)
    const { stdout } = await promisify(execFile)(process.execPath, [program, await newDatabase()])
    const { calls, statements, utilization, delayMs } = JSON.parse(stdout)
    const { chunksReceived, ...call } = calls[PATH]
    expect(call).to.deep.equal({
      calls: 1,
      messagesSent: 3,
      writes: 2,
      bytesSent: 45,
      messagesReceived: 2,
      bytesReceived: 30,
    })
    expect(chunksReceived).to.be.within(1, 2)
    expect(statements).to.deep.equal({ 'select 1': 1, 'select $1::int': 2 })
    expect(utilization).to.be.within(0, 1)
    expect(delayMs.max).to.be.at.least(0)
  })
})
