import { readFileSync } from 'node:fs'

/** The settings of mocha, for those who start it without its command line. */

type Settings = Readonly<Record<string, unknown>>

const settings = JSON.parse(readFileSync(new URL('../../.mocharc.json', import.meta.url), 'utf8')) as Settings

/** Read by mocha's command line alone. */
const OF_COMMAND_LINE = new Set(['extension', 'node-option', 'require'])

const camelCase = (name: string): string => name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

export const mochaOptions: Mocha.MochaOptions = Object.fromEntries(
  Object.entries(settings)
    .filter(([name]) => !OF_COMMAND_LINE.has(name))
    .map(([name, value]) => [camelCase(name), value]),
)

export const nodeOptions: readonly string[] = (settings['node-option'] as readonly string[]).map(flag => `--${flag}`)
