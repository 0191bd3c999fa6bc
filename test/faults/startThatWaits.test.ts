import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { type End, outputUntil, startAlone } from '../support/starts.ts'

/** A start gives up waiting for Postgres after half a minute, and a process that does not close is ended after 20 s. */
const GIVEN_UP_AFTER_MS = 14_000

/** Starts the service with these arguments, interrupts it once its output has the text, and resolves to its end. */
const endOf = async (
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  interruptAt?: string,
): Promise<End> => {
  const { ended } = await startAlone({
    env,
    args,
    // Once: a second signal ends the process at once, with 1.
    onOutput: (output, child) => interruptAt !== undefined && output.endsWith(interruptAt) && child.kill('SIGINT'),
  })
  return ended
}

/** By what is wrong: the environment, and the one line that the start prints. */
const REFUSED: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
  [{ PORT: '99999' }, /^PORT=99999 is not valid: expected a port number from 0 to 65535\.\n$/],
  [{ LEDGER_ROLES: 'apii' }, /^LEDGER_ROLES=apii is not valid: expected api, projector, publisher or worker\.\n$/],
  [{ HOST: '192.0.2.1' }, /^HOST=192\.0\.2\.1 is not an address of this machine\. [^\n]+\n$/],
  [
    { METRICS_PORT: '0', METRICS_HOST: '192.0.2.1' },
    /^METRICS_HOST=192\.0\.2\.1 is not an address of this machine\. [^\n]+\n$/,
  ],
  [{ EVIDENCE_SIGNING_KEY: 'opensesame' }, /^EVIDENCE_SIGNING_KEY is not valid: (?!.*opensesame)[^\n]+\n$/],
  [
    { EVIDENCE_HEADS_FILE: '/proc/ledger/heads' },
    /^EVIDENCE_HEADS_FILE=\/proc\/ledger\/heads cannot be written \(ENOENT\)\.\n$/,
  ],
]

describe('a start that cannot succeed', () => {
  for (const [env, line] of REFUSED)
    it(`prints one line for ${JSON.stringify(env)}`, async () => {
      const { code, output } = await endOf(env)
      expect(output).to.match(line)
      expect(code).to.equal(1)
    })

  it('refuses arguments, and says where the settings are', async () => {
    const { code, output } = await endOf({}, ['--port', '80'])
    expect(output).to.match(/^npm start takes no arguments, and got --port 80\. [^\n]+\n$/)
    expect(code).to.equal(2)
    const help = await endOf({}, ['--help'])
    expect(help.output).to.match(/^Usage: [^]*LEDGER_DATA_DIR[^]*OPERATING\.md/)
    expect(help.code).to.equal(0)
  })
})

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
    const waiting = `Waiting for Postgres at ${place} (DATABASE_URL).\n`
    const output = await outputUntil(waiting, {
      DATABASE_URL: `postgres://ann:opensesame@${place}/ledger`,
      EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=false',
    })
    expect(output).not.to.include('opensesame')
  })

  for (const processes of ['1', '2'])
    it(`ends at Ctrl-C at once and without an error, with LEDGER_PROCESSES=${processes}`, async () => {
      const waiting = `Waiting for Postgres at 127.0.0.1:${port} (DATABASE_URL).\n`
      const stores = { DATABASE_URL: `postgres://ann@127.0.0.1:${port}/ledger`, EVENTSTORE_URL: 'esdb://127.0.0.1:1' }
      const began = performance.now()
      const { code, output } = await endOf({ ...stores, LEDGER_PROCESSES: processes }, [], waiting)
      expect(code).to.equal(0)
      expect(output.endsWith(`${waiting}stopping\nstopped\n`), output).to.equal(true)
      expect(performance.now() - began, 'the time of a start that gives up').to.be.below(GIVEN_UP_AFTER_MS)
    })

  it('names an address that refuses connections before it is needed', async () => {
    const setting = '127.0.0.1:1 (DATABASE_URL)'
    const output = await outputUntil('\n', { DATABASE_URL: 'postgres://ann:opensesame@127.0.0.1:1/ledger' })
    expect(output).to.equal(
      `Cannot connect to Postgres at ${setting}: the connection was refused (ECONNREFUSED). Start it, or correct DATABASE_URL. Trying again.\n`,
    )
  })

  it('names a misspelt setting', async () => {
    const output = await outputUntil('KAFKA', { KAFKA_BROKER: '127.0.0.1:9092' })
    expect(output).to.include(
      'KAFKA_BROKER is not a setting of the service and has no effect. Did you mean KAFKA_BROKERS?',
    )
  })

  it('refuses an unusable data directory in one line', async () => {
    const output = await outputUntil('\n', { LEDGER_DATA_DIR: '/proc/ledger' })
    expect(output).to.match(
      /^The data directory \/proc\/ledger cannot be created \(ENOENT\)\. To use a different directory, set LEDGER_DATA_DIR\.\n$/,
    )
  })

  it('refuses an address of the event store that its client cannot read in one line', async () => {
    const output = await outputUntil('\n', { EVENTSTORE_URL: 'esdb://admin:opensesame@127.0.0.1:1?tls=maybe' })
    expect(output).to.match(/^EVENTSTORE_URL is not valid: [^\n]+\n$/)
    expect(output).not.to.include('opensesame')
  })

  it('is ready without Kafka, and says that it does not answer', async () => {
    const output = await outputUntil('does not answer', { KAFKA_BROKERS: '127.0.0.1:1' })
    expect(output).to.include('Kafka at 127.0.0.1:1 (KAFKA_BROKERS) does not answer; trying again.')
  })
})
