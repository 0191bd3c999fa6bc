import { readFileSync } from 'node:fs'

/** The settings in .mocharc.json, for mocha started from a program: only mocha's command line reads that file itself. */

type Settings = Readonly<Record<string, unknown>>

const settings = JSON.parse(readFileSync(new URL('../../.mocharc.json', import.meta.url), 'utf8')) as Settings

/** Settings that only mocha's command line applies. */
const READ_BY_COMMAND_LINE_ONLY = new Set(['extension', 'node-option', 'require'])

const camelCase = (name: string): string => name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** CI fails on cases that are left out, which is how one works on a single case elsewhere. */
const inCi = { forbidOnly: true, forbidPending: true }

export const mochaOptions: Mocha.MochaOptions = {
  ...Object.fromEntries(
    Object.entries(settings)
      .filter(([name]) => !READ_BY_COMMAND_LINE_ONLY.has(name))
      .map(([name, value]) => [camelCase(name), value]),
  ),
  ...(process.env['CI'] && inCi),
}

export const nodeOptions: readonly string[] = (settings['node-option'] as readonly string[]).map(flag => `--${flag}`)
