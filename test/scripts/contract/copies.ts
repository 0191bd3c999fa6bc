import type { Contract } from '../../../scripts/contract/documents.ts'
import type { Rule } from '../../../scripts/contract/rules.ts'

/** A change that is planted alone in a copy of the released contract, and the places of the documents where changes are planted. */

// oxlint-disable-next-line typescript/no-explicit-any -- A planted change edits whatever the document has.
export type Node = any
type Copy = { readonly openapi: Node; readonly asyncapi: Node }

export type PlantedChange = {
  readonly change: string
  readonly rule: Rule
  readonly plant: (copy: Copy) => void
}

/** A copy of the contract with the change. */
export const withChange = (contract: Contract, { plant }: PlantedChange): Contract => {
  const copy = structuredClone(contract)
  plant(copy)
  return copy
}

export const operation = (copy: Copy, method: string, path: string): Node => copy.openapi.paths[path][method]
export const payments = (copy: Copy): Node => operation(copy, 'post', '/payments')
export const orders = (copy: Copy): Node => operation(copy, 'get', '/orders')
export const schema = (copy: Copy, name: string): Node => copy.openapi.components.schemas[name]
export const fact = (copy: Copy, name: string): Node => copy.asyncapi.components.schemas[name]
export const topic = (copy: Copy, name: string): Node => copy.asyncapi.channels[name]
export const limit = (copy: Copy): Node => orders(copy).parameters.find((one: Node) => one.name === 'limit').schema

/** The response of an operation, no longer shared with the other operations. */
export const ownResponse = (copy: Copy, of: Node, status: string): Node => {
  const { $ref } = of.responses[status]
  if ($ref === undefined) return of.responses[status]
  of.responses[status] = structuredClone(copy.openapi.components.responses[$ref.split('/').at(-1)])
  return of.responses[status]
}

export const without = (list: readonly unknown[], value: unknown): unknown[] => list.filter(one => one !== value)
