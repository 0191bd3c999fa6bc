import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { temporaryDirectory } from '../support/service.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname

/** Starts the service until its output has the text, and resolves to the output. */
const outputUntil = async (text: string, env: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await temporaryDirectory()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
    env: { ...process.env, PORT: '0', LEDGER_PROCESSES: '1', LEDGER_DATA_DIR: folder, METRICS_PORT: 'off', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  const ended = once(child, 'close')
  try {
    await eventually(() => output.includes(text))
    return output
  } finally {
    child.kill('SIGKILL')
    await ended
    await removeFolder(folder)
  }
}

describe('a start whose dependency does not answer', () => {
  let silent: Server
  let port: number
  before(async () => {
    silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    ;({ port } = silent.address() as AddressInfo)
  })
  after(() => silent.close())

  it('names the host and the setting of Postgres, and never its password', async () => {
    const place = `127.0.0.1:${port}`
    const output = await outputUntil('\n', {
      DATABASE_URL: `postgres://ann:opensesame@${place}/ledger`,
      EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
    })
    expect(output.split('\n')[0]).to.equal(`Waiting for Postgres at ${place} (DATABASE_URL).`)
    expect(output).not.to.include('opensesame')
  })

  it('names a misspelt setting', async () => {
    const output = await outputUntil('KAFKA', { KAFKA_BROKER: '127.0.0.1:9092' })
    expect(output).to.include('KAFKA_BROKER is not a setting of the service; KAFKA_BROKERS is.')
  })

  it('refuses an unusable data directory in one line', async () => {
    const output = await outputUntil('\n', { LEDGER_DATA_DIR: '/proc/ledger' })
    expect(output).to.match(/^The data directory \/proc\/ledger cannot be created \(ENOENT\)\.\n$/)
  })

  it('refuses an address of the event store that its client cannot read in one line', async () => {
    const output = await outputUntil('\n', { EVENTSTORE_URL: 'esdb://admin:opensesame@127.0.0.1:1?tls=maybe' })
    expect(output).to.match(/^EVENTSTORE_URL is not usable: [^\n]+\n$/)
    expect(output).not.to.include('opensesame')
  })

  it('is ready without Kafka, and says that it does not answer', async () => {
    const output = await outputUntil('does not answer', { KAFKA_BROKERS: '127.0.0.1:1' })
    expect(output).to.include('Kafka at 127.0.0.1:1 (KAFKA_BROKERS) does not answer; trying again.')
  })
})
