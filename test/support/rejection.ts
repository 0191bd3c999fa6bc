/** The error with which the work is rejected. Throws when it is fulfilled, or rejected with something else. */
export const rejectionOf = async (work: Promise<unknown>): Promise<Error> => {
  const outcome = await work.then(
    () => 'it was fulfilled',
    (error: unknown) => error,
  )
  if (outcome instanceof Error) return outcome
  throw new Error(`A rejection was expected, but ${String(outcome)}.`)
}
