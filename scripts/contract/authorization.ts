import { type Json, type JsonObject, listOf, objectAt, textOf, textsOf, type Operations } from './documents.ts'
import type { Finding, Rule } from './rules.ts'

/** Each scheme without scopes of its own, as API keys are, has each of `x-scopes` as an alternative. */
const alternativesIn = (scheme: string, own: Json, operation: JsonObject): readonly string[] => {
  const shared = textsOf(operation['x-scopes'])
  if (listOf(own).length > 0 || shared.length === 0) return [`${scheme} ${textsOf(own).join(' ')}`.trim()]
  return shared.map(scope => `${scheme} ${scope}`)
}

/** Each alternative of `security` as a text; a public operation permits the empty one. */
const alternativesOf = (operation: JsonObject): readonly string[] => {
  const texts = listOf(operation['security']).flatMap(alternative =>
    Object.entries(objectAt(alternative)).flatMap(([scheme, scopes]) => alternativesIn(scheme, scopes, operation)),
  )
  return texts.length === 0 ? [''] : texts
}

const named = (alternative: string): string => (alternative === '' ? 'no credential' : alternative)

export const compareAuthorization = ({ was, now, where }: Operations): readonly Finding[] => {
  const [before, after] = [alternativesOf(was), alternativesOf(now)]
  const [kindsBefore, kindsAfter] = [textsOf(was['x-credentials']), textsOf(now['x-credentials'])]
  const finding = (rule: Rule, change: string): Finding => ({ rule, where, path: '', change })
  const lost = before.filter(alternative => !after.includes(alternative))
  const gained = after.filter(alternative => !before.includes(alternative))
  const change = `It was permitted with ${before.map(named).join(' or ')}, and is with ${after.map(named).join(' or ')}.`
  return [
    ...(lost.length > 0 ? [finding('scope-changed', change)] : []),
    ...(lost.length === 0 && gained.length > 0 ? [finding('authorization-widened', change)] : []),
    ...kindsBefore
      .filter(kind => !kindsAfter.includes(kind))
      .map(kind => finding('credential-refused', `The credential ${textOf(kind)} is no longer permitted.`)),
    ...kindsAfter
      .filter(kind => !kindsBefore.includes(kind))
      .map(kind => finding('authorization-widened', `The credential ${textOf(kind)} is permitted as well.`)),
  ]
}
