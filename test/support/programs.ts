import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { prepareKafka } from '../../scripts/kafka/broker.ts'
import { StartupError } from '../../src/lib/startupError.ts'

const TRIAL_MAX_MS = 30_000

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * The path of the program that the PATH leads to; undefined if there is none, or if it does not succeed with these
 * arguments: a program that is there may lack a library, a right or its data.
 */
export const findWorkingProgram = (name: string, trial: readonly string[]): string | undefined => {
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .map(folder => join(folder, name))
    .find(isExecutable)
  if (path === undefined) return undefined
  const { status } = spawnSync(path, trial, { stdio: 'ignore', timeout: TRIAL_MAX_MS, killSignal: 'SIGKILL' })
  return status === 0 ? path : undefined
}

/**
 * Why no broker can be started on this machine; undefined if one can. Fetches its jars, unless they are there: Maven alone is
 * not enough without a way to its repository.
 */
export const whyNoBroker = async (libsDir?: string): Promise<string | undefined> => {
  try {
    await prepareKafka(line => process.stdout.write(`${line}\n`), libsDir)
    return undefined
  } catch (error) {
    if (error instanceof StartupError) return error.message
    throw error
  }
}
