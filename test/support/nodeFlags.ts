/**
 * Flags of Node for processes that run for seconds: with more room for young objects from the beginning, far fewer
 * collections interrupt the loading of modules.
 */
export const SHORT_LIVED: readonly string[] = ['--min-semi-space-size=16']
