import { readFileSync } from 'node:fs'
import { StartupError, systemCode } from '../lib/startupError.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a directory',
}

/** The content of a file that a setting names. Throws a StartupError with the setting and the path. */
export const readSettingFile = (setting: string, path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = systemCode(error) ?? ''
    throw new StartupError(`${setting}=${path} cannot be read: ${REASONS[code] ?? code}.`, error)
  }
}
