import { cp, mkdir, rename } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { formatStorage, type Kafka, type KafkaOptions, startKafka } from '../../scripts/kafka/broker.ts'
import { removeFolder } from './folders.ts'
import { temporaryFolder } from '../embedded/childProcesses.ts'

/**
 * The storage of a new Kafka broker, formatted once in each process. Its copies save the tests a JVM for each broker. The
 * tests of `npm run kafka` format theirs themselves.
 */

let folder: Promise<string> | undefined

const prepare = async (): Promise<string> => {
  const path = await temporaryFolder()
  await formatStorage(path)
  return path
}

/** Starts a broker like `startKafka`; one that has never started begins with a copy of the prepared storage. */
export const startBroker = async (options: KafkaOptions): Promise<Kafka> => {
  const storage = join(options.dataDir, 'log')
  if (!existsSync(storage)) {
    const prepared = await (folder ??= prepare())
    await mkdir(options.dataDir, { recursive: true })
    await cp(join(prepared, 'log'), `${storage}.copy`, { recursive: true })
    await rename(`${storage}.copy`, storage)
  }
  return startKafka(options)
}

/** For the root hook. */
export const removePreparedBroker = async (): Promise<void> => {
  const path = await folder?.catch(() => undefined)
  folder = undefined
  if (path !== undefined) await removeFolder(path)
}
