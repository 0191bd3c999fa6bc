import type { Answer } from '../http.ts'
import type { Random } from '../random.ts'

/** The resources that the clients of a run have seen in answers, as they were in the last answer. */
export type Known = {
  readonly id: string
  readonly tenant: string
  etag: string
  readonly body: Readonly<Record<string, unknown>>
  position: string | undefined
}
export type Kind = 'order' | 'invoice' | 'payment' | 'operation' | 'subscription'

export type Resources = {
  readonly learn: (kind: Kind, tenant: string, answer: Answer | undefined) => Known | undefined
  /** Picks a resource that the tenant knows and that fits; undefined if there is none. */
  readonly pick: (kind: Kind, tenant: string, random: Random, fits?: (known: Known) => boolean) => Known | undefined
  readonly all: (kind: Kind) => readonly Known[]
}

export const createKnownResources = (): Resources => {
  const known = new Map<Kind, Map<string, Known>>()
  const ofKind = (kind: Kind): Map<string, Known> => {
    const existing = known.get(kind) ?? new Map<string, Known>()
    known.set(kind, existing)
    return existing
  }
  return {
    learn: (kind, tenant, answer) => {
      const id = answer?.body?.['id']
      if (answer === undefined || answer.status >= 300 || answer.body === undefined || typeof id !== 'string')
        return undefined
      const before = ofKind(kind).get(id)
      const etag = answer.headers['ETag'] ?? before?.etag ?? ''
      const position = answer.headers['Ledger-Position'] ?? before?.position
      const learned = { id, tenant, etag, body: answer.body, position }
      ofKind(kind).set(id, learned)
      return learned
    },
    pick: (kind, tenant, random, fits = () => true) => {
      const fitting = [...ofKind(kind).values()].filter(one => one.tenant === tenant && fits(one))
      return fitting.length === 0 ? undefined : random.pick(fitting)
    },
    all: kind => [...ofKind(kind).values()],
  }
}
