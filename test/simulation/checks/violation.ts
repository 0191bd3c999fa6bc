/** A promise of the service that was broken in a run, and the evidence. */
export type Violation = { readonly promise: string; readonly detail: string }

export const violation = (promise: string, detail: string): Violation => ({ promise, detail })
