import { z } from 'zod'
import { countMember, positionMember, textMember } from '../factMembers.ts'
import { announces, type FactMap } from '../facts.ts'
import type { ManifestEvent } from './events.ts'

/** The facts of manifests. */

export const manifestFacts: FactMap<ManifestEvent> = {
  ManifestSealed: announces({
    type: 'ledger.manifest',
    version: 1,
    title: 'What a topic holds was counted',
    description:
      'Who has as many facts of the topic between the two positions, with the same hash, has them all. Those that are ' +
      'missing are left out of both.',
    schema: z.object({
      topic: textMember('The topic that was counted.'),
      from_position: positionMember('The first that was counted.'),
      to_position: positionMember(
        'The last that was counted. Nothing more will ever come between the two, but for those that are missing.',
      ),
      count: countMember('The facts between the two, of all tenants.'),
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .meta({
          description: 'Over the ids of the facts in the order of their positions, each followed by a line feed.',
        }),
      missing: z
        .array(
          z.object({ id: textMember('The id that the fact will have.'), position: positionMember('Of its event.') }),
        )
        .meta({ description: 'Events that were held back when it was counted. Absent when there were none.' })
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
