type Call = { getDeadline(): Date | number }

/** Milliseconds since 1970; infinity if the client set none. */
export const deadlineOf = (call: Call): number => {
  const deadline = call.getDeadline()
  return typeof deadline === 'number' ? deadline : deadline.getTime()
}
