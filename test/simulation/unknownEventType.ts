/** An event type that this build does not know, as a newer build would write it. */
export const UNKNOWN_EVENT_TYPE = 'WrittenByANewerBuild'
