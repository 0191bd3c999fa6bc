/** Slots for work in progress, counted in memory. */

/** Counts the work that is in progress for a key. */
export type SlotCounter = {
  /** The function that releases the slot; undefined when `max` slots of the key are taken. Never rejects. */
  readonly take: (key: string, max: number) => Promise<(() => void) | undefined>
}

export const createLocalSlots = (): SlotCounter => {
  const byKey = new Map<string, number>()
  const release = (key: string): void => {
    const rest = (byKey.get(key) ?? 1) - 1
    if (rest === 0) byKey.delete(key)
    else byKey.set(key, rest)
  }
  return {
    take: async (key, max) => {
      const held = byKey.get(key) ?? 0
      if (held >= max) return undefined
      byKey.set(key, held + 1)
      let isHeld = true
      return () => {
        if (isHeld) release(key)
        isHeld = false
      }
    },
  }
}
