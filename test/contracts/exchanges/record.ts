import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { OLDEST_VERSION, VERSIONS } from '../../../src/http/index.ts'
import { type Answer, clientOf } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { closeShared } from '../../support/mochaHooks.ts'
import { sharedService, type TestService } from '../../support/service.ts'
import type { Exchange } from './exchange.ts'
import { programs, type Send } from './programs.ts'
import { createRecorder } from './recording.ts'

/**
 * `node test/contracts/exchanges/record.ts <version>` records what the clients of a version exchange with the real service. A
 * version that is recorded is never recorded again: its files stand for clients that do not change.
 */

const folderOf = (version: string): URL => new URL(`./${version}/`, import.meta.url)

const recordClient = async (service: TestService, version: string, name: string): Promise<readonly Exchange[]> => {
  const tenant = `recorded-${randomUUID().slice(0, 8)}`
  const client = clientOf(service.api, await service.token({ tenant }))
  const anonymous = clientOf(service.api)
  const record = createRecorder({ tenant, api: service.api })
  const exchanges: Exchange[] = []
  const versionHeader: Record<string, string> = version === OLDEST_VERSION ? {} : { 'api-version': version }
  const send: Send = async (method, path, { headers = {}, body, until } = {}) => {
    const all = { ...versionHeader, ...headers }
    const { authorization, ...sent } = all
    const own = authorization === undefined ? client : anonymous
    const ask = () =>
      own.request(method, path, {
        headers: authorization ? { ...sent, authorization } : sent,
        ...(body === undefined ? {} : { body }),
      })
    const answer: Answer =
      until === undefined
        ? await ask()
        : await eventually(async () => {
            const last = await ask()
            return until(last) && last
          })
    exchanges.push(
      record({ method, path, headers: all, ...(body === undefined ? {} : { body }) }, answer, until !== undefined),
    )
    return answer
  }
  await programs[name]?.(send, version)
  return exchanges
}

const [version = ''] = process.argv.slice(2)
if (!VERSIONS.some(one => one === version)) throw new Error(`The versions are ${VERSIONS.join(', ')}.`)
if (existsSync(folderOf(version))) throw new Error(`${version} is recorded already.`)
const service = await sharedService()
try {
  for (const name of Object.keys(programs)) {
    const exchanges = await recordClient(service, version, name)
    mkdirSync(folderOf(version), { recursive: true })
    writeFileSync(new URL(`${name}.json`, folderOf(version)), `${JSON.stringify(exchanges, null, 2)}\n`)
    process.stdout.write(`${version}/${name}.json: ${exchanges.length} exchanges\n`)
  }
} finally {
  await closeShared()
}
