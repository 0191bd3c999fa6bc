/**
 * Ends what the files of one process share and a module starts only for some of them. The root hook does not import that
 * module, since this costs time.
 */
export const closers: (() => Promise<void>)[] = []
