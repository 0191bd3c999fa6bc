import { z } from 'zod'
import { countMember, positionMember, textMember } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
import type { ManifestEvent } from './events.ts'

export const manifestFacts: FactMap<ManifestEvent> = {
  ManifestSealed: announces({
    type: 'ledger.manifest',
    version: 1,
    title: 'The facts of a topic were counted',
    description:
      'A consumer with the same count and hash of facts between the two positions has all of them. Missing facts are ' +
      'left out of both.',
    schema: z.object({
      topic: textMember('The topic that was counted.'),
      from_position: positionMember('The first position that was counted.'),
      to_position: positionMember(
        'The last position that was counted. No further facts will appear in this range, except the missing ones.',
      ),
      count: countMember('The number of facts in this range, of all tenants.'),
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .meta({
          description:
            'SHA-256 over the ids of the facts in the order of their positions, each followed by a line feed.',
        }),
      missing: z
        .array(
          z.object({
            id: textMember('The id that the fact will have.'),
            position: positionMember('The position of the event.'),
          }),
        )
        .meta({ description: 'Events that were held back at the time of the count. Absent without any.' })
        .optional(),
    }),
    example: {
      topic: 'ledger.invoice.v1',
      from_position: '7718204',
      to_position: '7731904',
      count: 412,
      sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    },
    data: ({ event: { data } }) => ({
      topic: data.topic,
      from_position: data.from_position.toString(),
      to_position: data.to_position.toString(),
      count: data.count,
      sha256: data.sha256,
      ...(data.missing && {
        missing: data.missing.map(({ id, position }) => ({ id, position: position.toString() })),
      }),
    }),
  }),
}
