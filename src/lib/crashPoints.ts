/** The steps at which tests kill the process (World.crashPoint). */

/** The steps of a payment (commands/payments.ts). */
export const PAYMENT_CRASH_POINTS = [
  'before_initiation',
  'after_initiation',
  'after_reference',
  'after_reservation',
  'after_outcome',
  'mid_response',
] as const
/** The steps of head signing (processes/headSigning.ts). */
export const SIGNING_CRASH_POINTS = ['after_leaves', 'before_head', 'after_head_file'] as const
export const CRASH_POINTS = [
  ...PAYMENT_CRASH_POINTS,
  ...SIGNING_CRASH_POINTS,
  'rebuild_batch',
  'rebuild_switch',
] as const
export type CrashPoint = (typeof CRASH_POINTS)[number]
