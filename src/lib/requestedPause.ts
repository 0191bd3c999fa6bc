const MS_PER_SECOND = 1_000
/** Timers overflow after 24 days; what would wait for longer than a day asks again. */
const PAUSE_MAX_MS = 86_400_000
const SECONDS = /^\d+$/
/** The preferred form and the two obsolete ones; `Date.parse` alone takes `1.5` for a date too. */
const HTTP_DATE = /^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d( GMT| \d{4})$/

const dateOf = (text: string | null): number => {
  if (text === null || !HTTP_DATE.test(text)) return Number.NaN
  return Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`)
}

/** Retry-After (RFC 9110, 10.2.3), a day at most; undefined if malformed. A date counts from the response's own Date. */
export const requestedPauseMs = (headers: Headers): number | undefined => {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  if (SECONDS.test(text)) return Math.min(Number(text) * MS_PER_SECOND, PAUSE_MAX_MS)
  const sentAt = dateOf(headers.get('date'))
  const pauseMs = dateOf(text) - (Number.isNaN(sentAt) ? Date.now() : sentAt)
  return Number.isNaN(pauseMs) ? undefined : Math.min(Math.max(pauseMs, 0), PAUSE_MAX_MS)
}
