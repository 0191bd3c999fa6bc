import { Parser } from '@asyncapi/parser'
import spectral, { type RulesetDefinition } from '@stoplight/spectral-core'
import parsers from '@stoplight/spectral-parsers'
import rulesets from '@stoplight/spectral-rulesets'
import type { Contract, JsonObject } from './documents.ts'

/** Matters of taste: which members name the owner, and the alphabetical order of tags. */
const OFF = { 'contact-properties': 'off', 'openapi-tags-alphabetical': 'off' } as const

type Diagnostic = {
  readonly code: string | number
  readonly message: string
  readonly path: readonly (string | number)[]
  readonly severity: number
}

/** Spectral's severities: 0 error, 1 warning, 2 information, 3 hint. */
const WARNING = 1

const sentencesOf = (file: string, diagnostics: readonly Diagnostic[]): readonly string[] =>
  diagnostics
    .filter(({ severity }) => severity <= WARNING)
    .map(({ code, message, path }) => `${file} at ${path.join('/')}: ${message} (${code})`)

const lintOpenApi = async (document: JsonObject): Promise<readonly string[]> => {
  const linter = new spectral.Spectral()
  // The types of the package do not accept its own ruleset.
  linter.setRuleset({ extends: [[rulesets.oas as RulesetDefinition, 'all']], rules: OFF })
  const file = new spectral.Document(JSON.stringify(document), parsers.Json, 'openapi.json')
  return sentencesOf('openapi.json', await linter.run(file))
}

/** Every error and warning of the linters, as a sentence. */
export const lint = async ({ openapi, asyncapi }: Contract): Promise<readonly string[]> => [
  ...(await lintOpenApi(openapi)),
  ...sentencesOf('asyncapi.json', await new Parser().validate(JSON.stringify(asyncapi))),
]
