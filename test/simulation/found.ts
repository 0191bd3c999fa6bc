import type { Noted } from './plan.ts'

/**
 * Defects of the service that the simulation has found, each with runs that show it when the fix is taken back. `bug` is the
 * name of the planted bug that takes it back (test/mutants/mutants.ts): `npm test` plays these runs and expects nothing,
 * `npm run mutants` plays them with the bug and expects it to be caught.
 *
 * A run is a seed and a plan: the few actions and faults that lead to the defect, in whole milliseconds. A seed alone has
 * another plan as soon as an action, a fault or a weight is added to the draw; an entry of a plan that is written down goes on
 * doing the same, because it draws under its own kind and number. Only delays still depend on everything else, so that a
 * change of the code may move an interleaving away from some seeds: that is why there are several.
 *
 * When `npm run mutants` says that a named run is lost, look for other seeds of the plan with the bug planted
 * (`npm run simulate -- --found '<bug>' --seeds 5000`), and keep those that fail.
 */
export type Found = { readonly bug: string; readonly seeds: readonly number[]; readonly plan: readonly Noted[] }

export const found: readonly Found[] = [
  {
    // A settlement or an invoice is cut off between two appends just before everything works again.
    bug: 'recovery waits for the whole deadline of a request',
    seeds: [121, 197, 238],
    plan: [
      [0, 'action', 0, 'create order'],
      [400, 'action', 1, 'raise invoice'],
      [800, 'action', 2, 'approve'],
      [1200, 'action', 3, 'pay'],
      [6700, 'fault', 4, 'outage between appends'],
      [6750, 'fault', 5, 'crash between appends'],
      [6800, 'action', 6, 'settle'],
      [6850, 'action', 7, 'refund'],
    ],
  },
  {
    // A fact is parked when the tables are made anew, and readers have passed its position.
    bug: 'readers lose their positions when the tables are rebuilt',
    seeds: [5, 11, 16],
    plan: [
      [0, 'action', 0, 'create order'],
      [300, 'fault', 1, 'refused row'],
      [500, 'action', 2, 'create order'],
      [900, 'action', 3, 'create order'],
      [1300, 'action', 4, 'create order'],
      [2200, 'fault', 5, 'rebuild'],
    ],
  },
  {
    // The newest fact is parked when the tables are made anew, and readers come back before the table has it.
    bug: 'a fact that is parked at a reset arrives before its own position',
    seeds: [189, 291],
    plan: [
      [0, 'action', 0, 'create order'],
      [10, 'fault', 1, 'refused row'],
      [100, 'action', 2, 'create order'],
      [300, 'action', 3, 'raise invoice'],
      [600, 'fault', 4, 'rebuild'],
    ],
  },
  {
    // One of two attempts is stopped once it has bound its key; the invoice of the other is voided before it goes on.
    bug: 'an order accepts its voided invoice again',
    seeds: [160, 579, 839],
    plan: [
      [0, 'action', 0, 'create order'],
      [300, 'fault', 1, 'stop between appends'],
      [400, 'action', 2, 'raise invoice'],
      [1200, 'action', 3, 'void invoice'],
    ],
  },
  {
    // A replaced worker begins an attempt in the midst of that of its successor, and ends before it is complete.
    bug: 'a superseded attempt at an export counts as the end of the export',
    seeds: [2, 6, 7],
    plan: [
      [0, 'action', 0, 'create order'],
      [300, 'fault', 1, 'export handed over'],
      [400, 'action', 2, 'create export'],
    ],
  },
  {
    // An open export keeps the checkpoint behind; a successor serves the discard before it reads the event again.
    bug: 'an event is parked again by the feed run that discarded it',
    seeds: [2548, 2783],
    plan: [
      [1647, 'action', 12, 'audit'],
      [1681, 'fault', 13, 'stop between appends'],
      [1888, 'action', 14, 'raise invoice'],
      [1958, 'action', 15, 'list'],
      [2031, 'action', 16, 'read manifest'],
      [2159, 'action', 17, 'raise invoice'],
      [2209, 'action', 18, 'settle early'],
      [2327, 'action', 19, 'pay'],
      [2506, 'action', 20, 'create export'],
      [3137, 'action', 21, 'change order'],
      [3308, 'fault', 22, 'stopped with poison'],
    ],
  },
  {
    // The log has grown beyond its former end before any process looks at it again.
    bug: 'a restored log that has grown since is accepted',
    seeds: [72, 87, 122],
    plan: [
      [0, 'action', 0, 'create order'],
      [400, 'action', 1, 'raise invoice'],
      [800, 'action', 2, 'create order'],
      [1200, 'action', 3, 'create order'],
      [7000, 'end', 4, 'restored log'],
    ],
  },
  {
    // Fulfilment reopens the order of a voided invoice, has no answer, and does so again some seconds later.
    bug: 'the events of a repeated command are folded as sent and not as stored',
    seeds: [316, 806],
    plan: [
      [0, 'action', 0, 'create order'],
      [400, 'action', 1, 'raise invoice'],
      [900, 'fault', 2, 'lost answers'],
      [1000, 'action', 3, 'void invoice'],
      [4000, 'action', 4, 'read'],
      [5000, 'action', 5, 'change order'],
    ],
  },
  {
    // Two requests meet at one order: the one that was refused asks again when the invoice of the other is voided.
    bug: 'an order does not record that it refused an invoice under an idempotency key',
    seeds: [223, 329, 388],
    plan: [
      [0, 'action', 0, 'create order'],
      [400, 'action', 1, 'raise invoice'],
      [405, 'action', 2, 'raise invoice'],
      [800, 'action', 3, 'void invoice'],
    ],
  },
]
