import type { RecordedEntry } from './plan.ts'

/**
 * Defects of the service that the simulation has found, each with recorded runs that show it when the fix is undone. `bug` is
 * the name of the mutant that undoes the fix (test/mutants/mutants.ts). `npm test` repeats the runs and expects no violation;
 * `npm run mutants` repeats them with the bug and expects one.
 *
 * A run is a seed and a plan: the few actions and faults that lead to the defect, with their times in milliseconds. A seed alone
 * is not enough, because it draws another plan as soon as an action, a fault or a weight is added. A recorded entry still does the
 * same then, because it has random numbers of its own, by its kind and number. Only delays depend on all other work: after a
 * change of the code some seeds may no longer show the defect, so there are several.
 *
 * When `npm run mutants` reports that recorded runs no longer fail, plant the bug, look for other seeds with the plan
 * (`npm run simulate -- --found '<bug>' --seeds 5000`), and record those that fail.
 */
export type Found = { readonly bug: string; readonly seeds: readonly number[]; readonly plan: readonly RecordedEntry[] }

export const actual: readonly Found[] = [
  {
    // A settlement or the raising of an invoice is interrupted between two appends just before the end of all faults.
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
    // A fact is parked after the backup; Postgres is restored, and the fact can be written when it is read again.
    bug: 'a fact that was parked before a restore or a reset is written at its own position',
    seeds: [3, 7, 9],
    plan: [
      [5000, 'action', 0, 'create order'],
      [5200, 'fault', 1, 'restored database'],
      [5210, 'fault', 2, 'refused row'],
      [5300, 'action', 3, 'create order'],
      [5400, 'action', 4, 'create order'],
      [5600, 'action', 5, 'create order'],
      [5900, 'action', 6, 'create order'],
    ],
  },
  {
    // One of two attempts is paused after it has bound its key; the invoice of the other is voided before it is resumed.
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
    // A replaced worker begins an attempt during that of its successor, and ends before its own is complete.
    bug: 'a superseded attempt at an export counts as the end of the export',
    seeds: [2, 6, 7],
    plan: [
      [0, 'action', 0, 'create order'],
      [300, 'fault', 1, 'export handed over'],
      [400, 'action', 2, 'create export'],
    ],
  },
  {
    // An open export holds the checkpoint back; a successor executes the discard before it reads the event again.
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
    // The log has grown beyond its former end before any process checks it again.
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
    // Fulfilment reopens the order of a voided invoice, gets no answer, and repeats the command some seconds later.
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
    // Two requests raise an invoice from one order; the refused one is repeated when the invoice of the other is voided.
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
