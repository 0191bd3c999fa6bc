const PORT_MAX = 65_535

/** The port that the text names, 0 for any; undefined for another text. */
export const portOf = (text: string): number | undefined => {
  const port = Number(text)
  return /^\d+$/.test(text) && port <= PORT_MAX ? port : undefined
}
