export type Lru<V> = {
  get(key: string): V | undefined
  set(key: string, value: V): void
  delete(key: string): void
  clear(): void
}

/** Keeps the `maxEntries` entries that were used last. A Map iterates in order of insertion, so its first is the oldest. */
export const createLru = <V>(maxEntries: number): Lru<V> => {
  const entries = new Map<string, V>()
  return {
    get: key => {
      const value = entries.get(key)
      if (value === undefined) return undefined
      entries.delete(key)
      entries.set(key, value)
      return value
    },
    set: (key, value) => {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size <= maxEntries) return
      const oldest = entries.keys().next()
      if (!oldest.done) entries.delete(oldest.value)
    },
    delete: key => void entries.delete(key),
    clear: () => entries.clear(),
  }
}
