import type { Upcasters } from '../codec.ts'

/** Old stored shape → next shape. Every event is still at its first version. */
export const secretUpcasters: Upcasters = {}
