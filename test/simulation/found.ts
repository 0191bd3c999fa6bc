import type { Noted } from './plan.ts'

/**
 * Defects of the service that the simulation has found, each with a run that shows it when the fix is taken back. `bug` is
 * the name of the planted bug that takes it back (test/mutants/mutants.ts): `npm test` plays these runs and expects nothing,
 * `npm run mutants` plays each with its bug and expects it to be caught.
 *
 * A run is kept as its seed and its plan: the actions and faults of the shortest run that showed the defect, as
 * `npm run simulate` prints them. A seed alone would have another plan as soon as an action, a fault or a weight is
 * added. Delays are drawn by the seed still, so that a change of the service may move the interleaving away; several seeds
 * stand for a plan where it shows the defect under several. When `npm run mutants` says that a named run is lost, plant its
 * bug, look for another seed (`npm run simulate -- --seeds 5000 --fail-fast`), and keep what is printed.
 */
export type Found = { readonly bug: string; readonly seeds: readonly number[]; readonly plan: readonly Noted[] }

export const found: readonly Found[] = []
