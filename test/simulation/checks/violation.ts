/** A promise that a run has broken: which one, and what shows it. */
export type Violation = { readonly promise: string; readonly detail: string }

export const violation = (promise: string, detail: string): Violation => ({ promise, detail })
