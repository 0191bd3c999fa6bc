/** Descriptions of the parameters that mean the same in every operation; others have theirs in the schema. */

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  id: 'The id of the resource.',
  code: 'An error code.',
  name: 'The name of a schema: type and version of a fact.',
  version: 'A dated version of the contract.',
  limit:
    'The most items of a page. A page may hold fewer, even none, while has_more is true: with filters that match few items, each page searches a part of the list. Continue with next_cursor.',
  cursor: 'The cursor of the page before, with the same filters; the first page by default.',
  created_after: 'Only items that were created after this time.',
  created_before: 'Only items that were created before this time.',
  state: 'Only items in this state.',
  currency: 'Only items in this currency.',
  order_id: 'Only items of this order.',
  invoice_id: 'Only items of this invoice.',
  payment_id: 'Only items of this payment.',
  reference: 'Only the item with this reference.',
  kind: 'Only operations of this kind.',
  operation: 'The operationId of this document.',
  type: 'Only facts of these types, separated by commas.',
  subject: 'Only items of this subject.',
  from_time: 'Start with the facts of this time and later ones.',
  decision: 'Only grants, or only denials.',
  resource: 'Only decisions about this resource.',
  correlation_id: 'Only decisions on the request with this correlation id.',
}

type Parameter = { readonly name?: unknown; description?: string }
type Operation = { readonly parameters?: readonly object[] | undefined }

export const describeParameters = (operations: readonly (Operation | undefined)[]): void => {
  for (const parameter of operations.flatMap((operation): readonly Parameter[] => operation?.parameters ?? [])) {
    const description = typeof parameter.name === 'string' ? DESCRIPTIONS[parameter.name] : undefined
    if (description !== undefined) parameter.description ??= description
  }
}
