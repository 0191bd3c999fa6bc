import type { AnyCommand, AnyEvent, Decider } from '../../streams/decider.ts'
import { isRejection } from '../../streams/decider.ts'
import type { Metadata, Recorded } from '../../streams/envelope.ts'
import type { Id, IdPrefix } from '../../streams/ids.ts'

/** Histories of streams that an aggregate decided, with the metadata that the store keeps. */

export const metadataAt = (n: number): Metadata => ({
  tenant: 'acme',
  subject: `clerk ${n}`,
  client: 'shop',
  authority: 'tests',
  correlationId: `correlation-${n}`,
  causationId: `cause-${n}`,
  at: new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString(),
  schemaVersion: 1,
})

export const recordedAs = <E extends AnyEvent>(of: Id<IdPrefix>, events: readonly E[]): Recorded<E>[] =>
  events.map((event, n) => ({
    event,
    eventId: `00000000-0000-8000-a000-${String(n).padStart(12, '0')}`,
    id: of,
    revision: BigInt(n),
    position: BigInt(n) + 1n,
    metadata: metadataAt(n),
  }))

/** The events of the commands in order, and the state after each event. */
export const decided = <S, C extends AnyCommand, E extends AnyEvent, Code extends string>(
  { initial, decide, evolve }: Decider<S, C, E, Code>,
  commands: readonly C[],
): { events: E[]; states: S[] } => {
  const events: E[] = []
  const states: S[] = []
  let state = initial
  for (const command of commands) {
    const answer = decide(command, state)
    for (const event of isRejection(answer) ? [] : answer) {
      state = evolve(state, event)
      events.push(event)
      states.push(state)
    }
  }
  return { events, states }
}
