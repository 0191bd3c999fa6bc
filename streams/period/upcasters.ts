import type { Upcasters } from '../codec.ts'

/** Upcasters, from each stored version to the next. Every event is still at its first version. */
export const periodUpcasters: Upcasters = {}
