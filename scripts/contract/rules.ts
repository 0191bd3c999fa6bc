/** The effect of each difference on clients of a released contract. One that no rule knows is an `unknown-change`. */

type RuleEntry = { readonly effect: 'breaking' | 'compatible'; readonly why: string }

const breaking = (why: string): RuleEntry => ({ effect: 'breaking', why })
const compatible = (why: string): RuleEntry => ({ effect: 'compatible', why })

export const RULES = {
  // --- Endpoints and their parameters
  'endpoint-removed': breaking('Released clients call it and would get 404 or 405.'),
  'endpoint-added': compatible('Released clients do not call it.'),
  'operation-id-changed': breaking('Generated clients name their functions by it.'),
  'parameter-removed': breaking('A request that sends it would be refused or would lose its meaning.'),
  'parameter-required': breaking('Released clients do not send it and would be refused.'),
  'parameter-added': compatible('It is optional, so that released clients need not send it.'),
  'parameter-optional': compatible('Released clients go on sending it.'),
  'body-required': breaking('Released clients send no body and would be refused.'),
  'body-removed': breaking('Released clients send a body that would no longer be read.'),
  'body-added': compatible('The body is optional.'),
  'media-type-removed': breaking('Released clients send or accept this media type.'),
  'media-type-added': compatible('Released clients do not ask for it.'),
  // --- Responses
  'status-removed': breaking('Released clients wait for this status.'),
  'status-added': breaking('Released clients do not know this outcome of a success.'),
  'error-status-added': compatible('Clients treat an unknown error status by its class.'),
  'header-removed': breaking('Released clients read it.'),
  'header-optional': breaking('Released clients rely on it in every response.'),
  'header-added': compatible('Clients ignore headers that they do not know.'),
  // --- Errors
  'error-code-removed': breaking('Released clients handle this code; the same failure would reach them under another.'),
  'error-code-added': compatible('Clients treat an unknown code by its status, category and retry guidance.'),
  'error-status-changed': breaking('Released clients expect this code with its released status.'),
  'error-category-changed': breaking('Released clients choose their recovery by the category.'),
  'retry-changed': breaking('Released clients would retry what must not be retried, or give up what should be.'),
  'retry-pause-changed': compatible('Clients wait for the pause that the response states.'),
  // --- Authorization and limits
  'scope-changed': breaking('Credentials of released clients lack the new permission.'),
  'authorization-widened': breaking('A credential that was given out under the old rule would gain power.'),
  'credential-refused': breaking('Released clients with this kind of credential would get 403.'),
  'security-scheme-changed': breaking('Released clients could no longer authenticate.'),
  'scope-added': compatible('Released clients do not need it.'),
  'rate-class-changed': breaking('The requests would count against another limit.'),
  'limit-narrowed': breaking('Requests that were accepted would be refused.'),
  'limit-widened': compatible('Everything that was accepted still is.'),
  'page-order-changed': breaking('Released clients rely on the order, for example to stop at a known item.'),
  'server-changed': breaking('Released clients would send requests to another address.'),
  // --- Schemas
  'field-removed': breaking('Released clients send or read this field.'),
  'field-added': compatible('It is optional in requests, and ignored in responses by clients that do not know it.'),
  'required-field-added': breaking('Released clients do not send it and would be refused.'),
  'field-required': breaking('Released clients may omit it and would be refused.'),
  'field-optional': compatible('Released clients go on sending it.'),
  'field-no-longer-sent': breaking('Released clients rely on this field in every response.'),
  'field-always-sent': compatible('Released clients that read it go on reading it.'),
  'type-changed': breaking('Released clients send or read a value of another type.'),
  'type-added': compatible('Values of the released type are still accepted.'),
  'type-narrowed': compatible('Released clients already read values of this type.'),
  'enum-value-removed': breaking('Released clients send this value or wait for it.'),
  'enum-value-added': compatible('Clients ignore values that they do not know, and need not send them.'),
  'event-value-added': breaking(
    'Consumers of facts know the closed list of values; archives are read again years later.',
  ),
  'enum-closed': breaking('Released clients send values outside of the list.'),
  'enum-opened': breaking('Released clients know a closed list of values.'),
  'bound-narrowed': breaking('Values that were accepted would be refused.'),
  'bound-widened': compatible('Every value that was accepted still is.'),
  'bound-exceeded': breaking('Released clients store or check the value by the released bound.'),
  'bound-tightened': compatible('Every value is within the released bound.'),
  'pattern-changed': breaking('Values of the released form would be refused, or others would be sent.'),
  'format-changed': breaking('Released clients send or parse the released format.'),
  'constraint-added': compatible('Every value that is sent satisfies the released contract.'),
  'constraint-removed': compatible('Every value that was accepted still is.'),
  'default-changed': breaking('A request that omits the field would have another meaning.'),
  'alternative-removed': breaking('Released clients send this alternative.'),
  'alternative-added': breaking('Released clients do not know this alternative, for example null.'),
  'alternative-accepted': compatible('Every alternative that was accepted still is.'),
  'alternative-unused': compatible('Released clients go on reading the other alternatives.'),
  'closed-to-fields': breaking('Undeclared fields, which were permitted, would be refused.'),
  'opened-to-fields': compatible('Everything that was accepted still is; clients ignore unknown fields.'),
  deprecated: compatible('It works as before.'),
  // --- Facts
  'channel-removed': breaking('Consumers read this topic.'),
  'channel-added': compatible('Released consumers do not read it.'),
  'channel-changed': breaking('Consumers read the released address.'),
  'partitions-changed': breaking('A key would move to another partition, and its facts would lose their order.'),
  'retention-narrowed': breaking('Consumers that are offline for the released time would miss facts.'),
  'delivery-changed': breaking('Consumers are built on the released guarantees of order, delivery and replay.'),
  'message-removed': breaking('Consumers wait for these facts.'),
  'message-added': compatible('Consumers ignore types that they do not know.'),
  'message-key-changed': breaking('Facts would be ordered and compacted by another key.'),
  'schema-removed': breaking('Archived facts refer to this schema by its address.'),
  // --- The rest
  'unknown-change': breaking('No rule of the policy knows this difference; add one to scripts/contract/rules.ts.'),
} as const satisfies Readonly<Record<string, RuleEntry>>

export type Rule = keyof typeof RULES

export type Finding = {
  readonly rule: Rule
  /** The operation or channel and its part, for example `POST /payments 201`. */
  readonly where: string
  /** The place in a schema, for example `Invoice/amount_due`; empty for the part itself. */
  readonly path: string
  /** The difference itself, a sentence. */
  readonly change: string
}

export const isBreaking = ({ rule }: Finding): boolean => RULES[rule].effect === 'breaking'
