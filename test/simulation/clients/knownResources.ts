import type { Answer } from '../http.ts'
import type { Random } from '../random.ts'

/** The resources that the clients of a run have seen: a client knows only what some answer has told. */
export type Known = {
  readonly id: string
  readonly tenant: string
  etag: string
  readonly body: Readonly<Record<string, unknown>>
  position: string | undefined
}
export type Kind = 'order' | 'invoice' | 'payment' | 'operation' | 'subscription'

export type KnownResources = {
  readonly learn: (kind: Kind, tenant: string, answer: Answer | undefined) => Known | undefined
  /** One that the tenant knows; undefined while it knows none that fits. */
  readonly some: (kind: Kind, tenant: string, random: Random, fits?: (known: Known) => boolean) => Known | undefined
  readonly all: (kind: Kind) => readonly Known[]
}

export const createKnownResources = (): KnownResources => {
  const known = new Map<Kind, Map<string, Known>>()
  const of = (kind: Kind): Map<string, Known> => {
    const there = known.get(kind) ?? new Map<string, Known>()
    known.set(kind, there)
    return there
  }
  return {
    learn: (kind, tenant, answer) => {
      const id = answer?.body?.['id']
      if (answer === undefined || answer.status >= 300 || answer.body === undefined || typeof id !== 'string')
        return undefined
      const before = of(kind).get(id)
      const etag = answer.headers['ETag'] ?? before?.etag ?? ''
      const position = answer.headers['Ledger-Position'] ?? before?.position
      const learned = { id, tenant, etag, body: answer.body, position }
      of(kind).set(id, learned)
      return learned
    },
    some: (kind, tenant, random, fits = () => true) => {
      const there = [...of(kind).values()].filter(one => one.tenant === tenant && fits(one))
      return there.length === 0 ? undefined : random.pick(there)
    },
    all: kind => [...of(kind).values()],
  }
}
