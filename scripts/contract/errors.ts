import { isSame, type JsonObject, namesOf, objectAt, textOf } from './documents.ts'
import type { Finding, Rule } from './rules.ts'

/** The comparison of the table of error codes, and of the retry guidance of one code. */

type Place = Pick<Finding, 'where' | 'path'>

/** Only the pause may change: whether and how to retry is a promise. */
export const compareRetry = (place: Place, was: JsonObject, now: JsonObject): readonly Finding[] => {
  const [{ after_seconds: pauseBefore, ...before }, { after_seconds: pauseAfter, ...after }] = [was, now]
  const change = `The retry guidance was ${textOf(was)} and is ${textOf(now)}.`
  const hasLostPause = pauseBefore !== undefined && pauseAfter === undefined
  if (!isSame(before, after) || hasLostPause) return [{ ...place, rule: 'retry-changed', change }]
  return isSame(pauseBefore, pauseAfter) ? [] : [{ ...place, rule: 'retry-pause-changed', change }]
}

/** Compares `x-problems`: code → status, category and retry guidance. */
export const compareProblems = (was: JsonObject, now: JsonObject): readonly Finding[] =>
  namesOf(was, now).flatMap((code): readonly Finding[] => {
    const place = { where: 'x-problems', path: code }
    const finding = (rule: Rule, change: string): Finding => ({ ...place, rule, change })
    if (!(code in now)) return [finding('error-code-removed', `The error code ${code} is removed.`)]
    if (!(code in was)) return [finding('error-code-added', `The error code ${code} is added.`)]
    const [before, after] = [objectAt(was, code), objectAt(now, code)]
    const changed = (name: string, rule: Rule) =>
      isSame(before[name], after[name])
        ? []
        : [finding(rule, `The ${name} of ${code} was ${textOf(before[name])} and is ${textOf(after[name])}.`)]
    return [
      ...changed('status', 'error-status-changed'),
      ...changed('category', 'error-category-changed'),
      ...compareRetry(place, objectAt(before, 'retry'), objectAt(after, 'retry')),
    ]
  })
