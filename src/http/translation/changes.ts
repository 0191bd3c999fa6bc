import type { z } from 'zod'
import type { AnyRoute } from '../route.ts'

/** The kinds of difference between two versions of a route, from which translators are composed. */

/** Operation id → the route as it was in one version, from the route of the next version. */
export type Translator = Readonly<Record<string, (next: AnyRoute) => AnyRoute>>

type Members = Readonly<Record<string, unknown>>

/** The route with an older schema of its request body. `up`: the body in the shape of the next version. */
export const withRequest =
  <S extends z.ZodType>({ schema, up }: { readonly schema: S; readonly up: (body: z.output<S>) => object }) =>
  (next: AnyRoute): AnyRoute => ({ ...next, body: schema.transform(body => up(body)) })

type OlderBody = {
  /** The status of the response whose body differs. */
  readonly status: number
  readonly schema: z.ZodType
  /** The body in the older shape, with its members in the order that they had. */
  readonly down: (body: Members) => object
}

/** The route with an older schema of one response. Other responses, and those without content, stay as they are. */
export const withResponse =
  ({ status, schema, down }: OlderBody) =>
  (next: AnyRoute): AnyRoute => {
    const spec = next.responses[status]
    if (spec === undefined) throw new Error(`${next.operationId} has no response ${status}.`)
    return {
      ...next,
      responses: { ...next.responses, [status]: { ...spec, schema } },
      handler: async call => {
        const reply = await next.handler(call)
        if (reply.status !== status || typeof reply.body !== 'object' || reply.body === null) return reply
        return { ...reply, body: down(reply.body as Members) }
      },
    }
  }

/** A page whose items are translated. */
export const itemsDown =
  (down: OlderBody['down']): OlderBody['down'] =>
  page => ({ ...page, items: (page['items'] as readonly Members[]).map(down) })
