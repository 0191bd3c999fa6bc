import { readSettingFile } from './settingFile.ts'
import { StartupError } from '../lib/startupError.ts'

/** Secrets in files, as Docker and Kubernetes provide them: NAME_FILE is the path of a file with the value of NAME. */

export const SECRETS = [
  'DATABASE_URL',
  'EVENTSTORE_URL',
  'KAFKA_SASL_PASSWORD',
  'API_KEY_PEPPER',
  'EVIDENCE_SIGNING_KEY',
] as const

export const fileSettingOf = (name: string): string => `${name}_FILE`

/** The value of a setting, from the environment or from its file; undefined if neither is set. Throws a StartupError. */
export const secretIn = (env: NodeJS.ProcessEnv, name: string): string | undefined => {
  const setting = fileSettingOf(name)
  const [own, path] = [env[name] || undefined, env[setting] || undefined]
  if (path === undefined) return own
  if (own !== undefined) throw new StartupError(`${name} and ${setting} are both set: remove one of them.`)
  // Editors and `echo` end a file with a line break.
  const value = readSettingFile(setting, path).replace(/\r?\n$/, '')
  if (value === '') throw new StartupError(`${setting}=${path} is an empty file.`)
  return value
}

/** The environment with the secrets that are in files. */
export const withSecretFiles = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...env,
  ...Object.fromEntries(SECRETS.map(name => [name, secretIn(env, name)])),
})
