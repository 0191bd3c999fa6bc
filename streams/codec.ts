import { z } from 'zod'
import type { AnyEvent } from './decider.ts'

/** The stored form of events: schemas, versions and upcasters. */

/** One schema per event type at its latest version: its input is stored, its output is used in memory. */
export type EventSchemas = Readonly<Record<string, z.ZodType<object>>>

export type EventOf<S extends EventSchemas> = {
  [T in keyof S & string]: { readonly type: T; readonly data: z.output<S[T]> }
}[keyof S & string]

export type DataOf<E extends AnyEvent, T extends E['type']> = Readonly<Extract<E, { readonly type: T }>['data']>

/** Converts stored data of one version to the next. */
export type Upcaster = (data: Readonly<Record<string, unknown>>) => Record<string, unknown>

/** By event type; index 0 reads version 1. The latest version is one more than the number of upcasters. */
export type Upcasters = Readonly<Record<string, readonly Upcaster[]>>

export type Codec<E extends AnyEvent> = {
  readonly types: readonly E['type'][]
  /** The stored form: JSON data and the version of its schema. */
  readonly encode: (event: E) => { data: Record<string, unknown>; schemaVersion: number }
  /** Throws UnknownEvent for a type or version that this build does not know, ZodError for data that does not fit. */
  readonly decode: (type: string, data: unknown, schemaVersion: number) => E
}

/** An event of a newer build, or of another program. A feed that reads it must not skip it. */
export class UnknownEvent extends Error {
  constructor(type: string, schemaVersion: number) {
    super(`The event ${type} of version ${schemaVersion} is unknown to this build.`)
    this.name = 'UnknownEvent'
  }
}

export const codecOf = <S extends EventSchemas>(schemas: S, upcasters: Upcasters = {}): Codec<EventOf<S>> => {
  const latest = (type: string): number => (upcasters[type]?.length ?? 0) + 1
  const schemaOf = (type: string, version: number): z.ZodType<object> => {
    const schema = Object.hasOwn(schemas, type) ? schemas[type] : undefined
    if (schema === undefined || version < 1 || version > latest(type)) throw new UnknownEvent(type, version)
    return schema
  }
  return {
    types: Object.keys(schemas),
    encode: event => {
      const schemaVersion = latest(event.type)
      const data = z.encode(schemaOf(event.type, schemaVersion), event.data) as Record<string, unknown>
      return { data, schemaVersion }
    },
    decode: (type, data, schemaVersion) => {
      const schema = schemaOf(type, schemaVersion)
      const steps = (upcasters[type] ?? []).slice(schemaVersion - 1)
      const current = steps.reduce<unknown>((older, step) => step(older as Record<string, unknown>), data)
      return { type, data: schema.parse(current) } as EventOf<S>
    },
  }
}
