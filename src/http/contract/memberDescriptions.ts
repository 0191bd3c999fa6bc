/** Descriptions of members by name or by path; one that says more is in its schema. */

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  // Every resource and list.
  id: 'The id of the resource; its prefix tells the kind.',
  tenant_id: 'The tenant that the resource belongs to.',
  created_by: 'The subject of the credential that created the resource.',
  metadata: 'Key-value pairs of the caller, stored and returned unchanged.',
  items: 'The items of the page, in the order of the list.',
  page: 'The place of the page in the list.',
  'page.next_cursor': 'The cursor of the next page; null at the end of the list.',
  'page.has_more': 'Whether another page follows. A page may have no items and others follow.',
  'page.as_of_position': 'The position of the log up to which the page is complete.',
  correlation_id: 'The id of the request, which is also in the X-Correlation-Id header and in the log.',
  causation_id: 'The id of the event or the request that caused the event.',
  event_id: 'The id of the event.',
  client: 'The OAuth client of the caller, or the id of its API key.',
  subject: 'The subject of the credential.',
  topic: 'The topic of the facts.',
  position: 'A position of the log.',
  from_position: 'The first position of the range.',
  to_position: 'The last position of the range.',
  links: 'The addresses of what the request led to.',
  unit: 'The unit of done and total.',
  done: 'What is done so far, in units.',
  eta_seconds: 'An estimate of the seconds left; null while it is unknown.',
  progress: 'The progress so far.',
  order_id: 'The id of the order.',
  invoice_id: 'The id of the invoice.',
  payment_id: 'The id of the payment.',
  customer_reference: 'The reference of the customer, as the caller gave it.',
  direction: 'The side of the posting.',
  settlement: 'immediate: paid at once. deferred: the amount is held until the payment is settled or declared failed.',
  requests: 'The number of requests in a window.',
  window_seconds: 'The length of the window, in seconds.',
  // Orders.
  'Order.state': 'open until an invoice is raised; completed when it is paid; cancelled orders are never invoiced.',
  lines: 'The lines of the order, which determine its total.',
  'lines.sku': 'The article, as the caller names it.',
  'lines.description': 'A text about the article; null where none was given.',
  'lines.quantity': 'The number of pieces.',
  'NewOrder.description': 'A text about the order.',
  'OrderPatch.description': 'A text about the order; null removes it.',
  'Order.description': 'A text about the order; null where none was given.',
  '/orders/{id}:cancel.reason': 'Why the order is cancelled; shown by its history.',
  // Invoices.
  'Invoice.state':
    'draft until it is approved; partially_paid and paid by its payments. An invoice without payments may be voided.',
  due_date: 'The date by which the invoice is due.',
  approved_by: 'The subject of the credential that approved the invoice; null before.',
  '/invoices/{id}:void.reason': 'Why the invoice is voided; shown by its history and by the audit record.',
  // Payments.
  'Payment.state': 'pending until a deferred payment is settled; refunds change succeeded.',
  'Payment.failure': 'The reason of a failed payment; null otherwise.',
  'failure.code': 'The error code of the failure, with a page at /problems/{code}.',
  '/payments/{id}:refund.reason': 'Why the amount is given back; shown by the history of the payment.',
  // Operations and exports.
  kind: 'The kind.',
  'Operation.state': 'pending and running lead to one of the others, which are final.',
  result: 'The outcome; null unless the operation has succeeded.',
  'result.href': 'The address of the outcome.',
  'Operation.error': 'The reason of a failure; null otherwise.',
  'error.code': 'The error code, with a page at /problems/{code}.',
  operation_id: 'The operation that made the export.',
  'NewExport.resource': 'The list that is exported.',
  'ExportManifest.resource': 'The list that was exported.',
  format: 'The format of the file.',
  filters: 'The filters of the rows.',
  'filters.state': 'Only rows in this state.',
  'filters.order_id': 'Only rows of this order.',
  'filters.invoice_id': 'Only rows of this invoice.',
  'filters.payment_id': 'Only rows of this payment.',
  'filters.reference': 'Only rows with this reference.',
  row_count: 'The number of rows of the file.',
  byte_count: 'The size of the file, in bytes.',
  // Problems.
  'Problem.type': 'The page about the error code.',
  'Problem.title': 'A summary that is the same for every occurrence of the code.',
  'Problem.status': 'The status code of the response.',
  'Problem.detail': 'What is wrong with this request, and what to do.',
  'Problem.instance': 'The path of the request.',
  'Problem.code': 'The error code, for programs.',
  'Problem.category': 'The kind of error, for programs that do not know the code.',
  'Problem.retry': 'Whether and how to repeat the request.',
  'retry.retryable': 'Whether a repetition may succeed.',
  'retry.strategy': 'How to repeat the request; the page about the code explains it.',
  'retry.after_seconds': 'The pause before the repetition, in seconds.',
  'Problem.errors': 'The members and parameters that were refused.',
  'errors.pointer':
    'A member of the body by JSON Pointer; ?name is a parameter of the query, /Name a header where the code is about headers.',
  'errors.code': 'The kind of violation, for programs.',
  'errors.detail': 'What is expected.',
  // History, audit and evidence.
  'HistoryEntry.type': 'The type of the event.',
  revision: 'The number of the event in the history, from 0.',
  data: 'The data of the event.',
  'AuditRecord.id': 'The id of the event that the record is made from.',
  decision: 'Whether the caller was permitted the operation.',
  'AuditRecord.resource': 'The id of the resource, or what else the operation was about; null where it was about none.',
  'AuditHead.v': 'The version of the form of heads.',
  'AuditProof.head': 'The signed head under which the event is proved.',
  kept_size: 'The number of signed events that were kept.',
  abandoned_size: 'The number of events that had been signed.',
  abandoned_root: 'The root of the abandoned tree, in hexadecimal digits.',
  abandoned_generation: 'The generation that was abandoned.',
  audit_record: 'The id of the audit record of the acceptance.',
  'accepted.by': 'Who accepted the loss.',
  'accepted.reason': 'Why the loss was accepted.',
  'withheld.pointer': 'The member that is not shown, by JSON Pointer.',
  'withheld.reason': 'Why the member is not shown.',
  // Idempotency keys and API keys.
  'IdempotencyKey.operation': 'The operationId of the request.',
  'IdempotencyKey.status':
    'never_seen: no request of this caller has the key. in_progress: repeat the request with the key. succeeded and rejected have an answer. expired: the key may be used anew.',
  'links.result': 'The resource that the request created.',
  'links.operation': 'The operation that shows the progress.',
  'ApiKey.state': 'Only active keys are accepted.',
  'ApiKeyWithSecret.state': 'Only active keys are accepted.',
  'ApiKey.name': 'The name that the key was given.',
  'ApiKeyWithSecret.name': 'The name that the key was given.',
  scopes: 'What the key may do.',
  expires_in_days: 'The days after which the key expires.',
  overlap_seconds: 'How long the earlier secret is accepted beside the new one, in seconds.',
  // Facts and subscriptions.
  datacontenttype: 'The media type of data.',
  'FactManifest.count': 'The number of facts in the range.',
  'missing.id': 'The id of the fact.',
  types: 'The types of the facts that are delivered.',
  principal: 'The principal of Kafka that may read the topic; null for none.',
  'Subscription.state': 'paused by the caller, stopped by the service; both keep their place in the log.',
  'start.position': 'The position after which the delivery starts.',
  'from.position': 'The position after which the replay starts.',
  'DeadLetter.type': 'The type of the fact.',
  'DeadLetter.reason': 'Why the fact could not be delivered.',
  '/schemas.items.name': 'The name of the schema: type and version.',
  '/schemas.items.href': 'The address of the schema.',
  '/schemas.items.title': 'What the fact says.',
  // Books.
  'Account.name': 'The name of the account in the chart of accounts.',
  'Account.type': 'The class of the account.',
  balances: 'The balances of the account.',
  'JournalEntry.description': 'What the entry is about.',
  // Health and read models.
  '/livez.status': 'The process runs.',
  '/readyz.status': 'Whether the process can serve requests.',
  'Projection.name': 'The name of the read model.',
  'ProjectionRebuild.projection': 'The name of the read model.',
  lag: 'How far the read model is behind the log.',
  accepted_reason: 'Why the differences were accepted; null where none were.',
  'ProjectionRebuild.error': 'The reason of a failure; null otherwise.',
  requested_by: 'The subject who requested the rebuild.',
  'parity.tables': 'The tables that were compared.',
  table: 'The name of the table.',
  'tables.tenants': 'The number of tenants with rows in the table.',
  'tables.rows': 'The number of rows of the table.',
  'difference.tenant_id': 'The tenant of the row; null where the tables themselves differ.',
  live: 'The value in the live table; null where it has no such row.',
  rebuilt: 'The value in the rebuilt table; null where it has no such row.',
}

type Schema = {
  description?: string
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema | boolean
  readonly additionalProperties?: Schema | boolean
}

type Describing = { readonly isDescribed: (schema: Schema) => boolean; readonly missing: string[] }

const partsOf = ({ anyOf = [], oneOf = [], allOf = [] }: Schema): readonly Schema[] => [...anyOf, ...oneOf, ...allOf]

/** The description of the longest end of the path that has one. */
const descriptionOf = (path: readonly string[]): string | undefined =>
  path.map((_, index) => DESCRIPTIONS[path.slice(index).join('.')]).find(text => text !== undefined)

const describeMembers = (schema: Schema, path: readonly string[], describing: Describing): void => {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const ofMember = [...path, name]
    if (!describing.isDescribed(member)) {
      const description = descriptionOf(ofMember)
      if (description === undefined) describing.missing.push(ofMember.join('.'))
      else member.description = description
    }
    describeMembers(member, ofMember, describing)
  }
  const { items, additionalProperties: others } = schema
  for (const part of [...partsOf(schema), items, others])
    if (typeof part === 'object') describeMembers(part, path, describing)
}

type Content = { readonly schema?: object | undefined }
type Body = { readonly content?: Readonly<Record<string, Content | undefined>> }
type Operation = { readonly requestBody?: object | undefined; readonly responses?: object | undefined }
export type Described = {
  readonly components?: { readonly schemas?: object | undefined } | undefined
  readonly paths?: object | undefined
}

/** Adds descriptions to the members that have none, and returns the paths of those for which there is none here. */
export const describeSchemas = ({ components, paths = {} }: Described): readonly string[] => {
  const schemas = (components?.schemas ?? {}) as Readonly<Record<string, Schema>>
  const isDescribed = (schema: Schema): boolean => {
    if (schema.description !== undefined) return true
    const target = schema.$ref === undefined ? undefined : schemas[schema.$ref.split('/').at(-1) ?? '']
    return (target !== undefined && isDescribed(target)) || partsOf(schema).some(isDescribed)
  }
  const describing: Describing = { isDescribed, missing: [] }
  for (const [name, schema] of Object.entries(schemas)) describeMembers(schema, [name], describing)
  for (const [path, methods] of Object.entries(paths) as [string, Readonly<Record<string, Operation>>][])
    for (const { requestBody, responses } of Object.values(methods))
      for (const { content = {} } of [requestBody ?? {}, ...Object.values(responses ?? {})] as readonly Body[])
        for (const body of Object.values(content))
          if (body?.schema !== undefined) describeMembers(body.schema, [path], describing)
  return describing.missing
}
