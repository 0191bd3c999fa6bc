/** Finds typing errors in the names of settings: such a variable has no effect, and a default is used. */

/** A variable whose name resembles a setting; `meant` is the setting that it differs from by a slip. */
export type LikeSetting = { readonly name: string; readonly meant?: string }

/** So settings of the service begin, but also some of Kafka's tools and EventStoreDB's servers (KAFKA_HOME). */
const OWN_PREFIX =
  /^(?:(?:LEDGER|OIDC|METRICS|IDEMPOTENCY|EVIDENCE|OPERATORS|MANIFEST|APPROVAL|EXPORTS|SUBSCRIPTIONS?|TENANT_BYTES|EXPORT_BYTES)_|KAFKA_(?:BROKER|SSL|SASL)|API_KEY(?:_P|S_))/

/** Short names are like too many others (HOST, HOME). */
const LENGTH_MIN = 7
const SLIPS_MAX = 2

/** The characters to insert, remove or replace, or neighbours to swap, that make `b` out of `a`. */
const slipsBetween = (a: string, b: string): number => {
  let [before, last] = [new Array<number>(), Array.from({ length: b.length + 1 }, (_, column) => column)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? (before[j - 2] ?? 0) + 1 : replaced
      row.push(Math.min(replaced, swapped, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    ;[before, last] = [last, row]
  }
  return last[b.length] ?? 0
}

/** The variables that are no setting and resemble one. A setting that has a value is not meant by another name. */
export const namesLikeSettings = (env: NodeJS.ProcessEnv, settings: ReadonlySet<string>): readonly LikeSetting[] => {
  const unset = [...settings].filter(setting => setting.length >= LENGTH_MIN && !env[setting])
  return Object.keys(env).flatMap(name => {
    if (settings.has(name) || !env[name]) return []
    const isNear = (setting: string): boolean => Math.abs(setting.length - name.length) <= SLIPS_MAX
    const meant = unset.find(setting => isNear(setting) && slipsBetween(name, setting) <= SLIPS_MAX)
    if (meant !== undefined) return { name, meant }
    return OWN_PREFIX.test(name) ? { name } : []
  })
}
