import type { Upcasters } from '../codec.ts'

/** Upcasters, from each stored version to the next. */
export const secretUpcasters: Upcasters = {
  SecretMade: [data => ({ ...data, keyed_references: false })],
}
