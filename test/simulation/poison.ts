/** An event type that this build does not know, as a newer build would write it. */
export const POISON_TYPE = 'WrittenByANewerBuild'
