/**
 * The vocabulary of a build: the number of the set of event types and versions that it can read. 1.0.0 has vocabulary 1. The log
 * records the vocabulary that its readers need (src/logIdentity/vocabulary.ts).
 */

/**
 * The events that 1.0.0 cannot read, as `<category>/<Type>.v<version>`, each with the vocabulary of the first release that
 * reads it. Events that are first read by the same release share a number.
 */
export const ADDED_EVENTS: Readonly<Record<string, number>> = {}

/** The vocabulary of this build. */
export const VOCABULARY = Math.max(1, ...Object.values(ADDED_EVENTS))
