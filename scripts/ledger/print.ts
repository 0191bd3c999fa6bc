/** One line on stdout, where the results go, and nothing but the results. */
export const print = (line = ''): void => void process.stdout.write(`${line}\n`)

/** One JSON document on stdout. Positions and revisions are texts in it: they may be larger than a float holds. */
export const printJson = (document: unknown): void =>
  print(JSON.stringify(document, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value), 2))
