/** The message of the error with which the work fails. Rejects if it does not fail. */
export const failureOf = async (work: Promise<unknown>): Promise<string> => {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (failure instanceof Error) return failure.message
  throw new Error('The work did not fail with an error.')
}
