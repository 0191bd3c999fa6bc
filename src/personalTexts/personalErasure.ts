import type { Database, Sql } from '../ports.ts'
import type { Context, Ledger } from '../commands/commandHandler.ts'
import { digestOf, kindOf, type PersonalKind, type PersonalToken } from './personalTexts.ts'
import { lostTokens } from './lostTexts.ts'
import { recordAuditedDecision } from '../commands/recordAuditedDecision.ts'

/** Commands of operators, which are audit records that name the token alone. */

/** A text, or its token. */
export type PersonalSelector = { readonly tenant: string } & (
  | { readonly kind: PersonalKind; readonly text: string }
  | { readonly token: PersonalToken }
)

/** A text from its first use to its erasure; when it is used again it gets another token. */
export type PersonalRecord = {
  readonly token: PersonalToken
  readonly kind: PersonalKind
  /** Null after the erasure. */
  readonly text: string | null
  readonly created_at: string
  readonly erased_at: string | null
}

export type Erasure = {
  readonly erased: readonly PersonalToken[]
  /** Erased by an earlier command. */
  readonly erased_before: readonly PersonalToken[]
}

const find = async (sql: Sql, ledger: Ledger, selector: PersonalSelector): Promise<readonly PersonalRecord[]> => {
  const [column, value] = 'token' in selector ? ['token', selector.token] : ['digest', await digestOf(ledger, selector)]
  return sql<PersonalRecord>(
    `select token, kind, text, created_at, erased_at from personal_texts where tenant_id = $1 and ${column} = $2
      order by created_at, token`,
    [selector.tenant, value],
  )
}

/** An audit record for each token, or one without, durable before the operator sees or changes anything. */
const record = async (
  ledger: Ledger,
  operation: 'show_personal_data' | 'erase_personal_data',
  records: readonly Pick<PersonalRecord, 'token'>[],
  context: Context,
): Promise<void> => {
  const resources = records.length === 0 ? [null] : records.map(({ token }) => token)
  for (const resource of resources) {
    const command = { type: 'GrantAccess' as const, operation, resource }
    await recordAuditedDecision(ledger, command, context)
  }
}

/** The present record of the text and its erased ones. Throws Unavailable. */
export const showPersonalTexts = async (
  { sql }: Pick<Database, 'sql'>,
  ledger: Ledger,
  selector: PersonalSelector,
  context: Context,
): Promise<readonly PersonalRecord[]> => {
  const records = await find(sql, ledger, selector)
  await record(ledger, 'show_personal_data', records, context)
  return records
}

/**
 * Every instance shows null within seconds, and exports that may have the text expire. Throws Unavailable: repeat it.
 */
export const erasePersonalTexts = async (
  { sql }: Pick<Database, 'sql'>,
  ledger: Ledger,
  selector: PersonalSelector,
  context: Context,
): Promise<Erasure> => {
  const records = await find(sql, ledger, selector)
  await record(ledger, 'erase_personal_data', records, context)
  const present = records.filter(({ erased_at }) => erased_at === null).map(({ token }) => token)
  await sql(
    'update personal_texts set text = null, erased_at = now() where token = any($1::text[]) and erased_at is null',
    [present],
  )
  const before = records.filter(({ erased_at }) => erased_at !== null).map(({ token }) => token)
  return { erased: present, erased_before: before }
}

const LOST_AT_ONCE = 500

/**
 * Records the tenant's texts that were lost as erased, so that no check finds them any more. Then nothing may bring them back.
 * Throws Unavailable: repeat it.
 */
export const eraseLostTexts = async (
  { sql }: Pick<Database, 'sql'>,
  ledger: Ledger,
  tenant: string,
  context: Context,
): Promise<Erasure> => {
  const erased: PersonalToken[] = []
  for (;;) {
    const tokens = await lostTokens(sql, tenant, LOST_AT_ONCE)
    if (tokens.length > 0)
      await record(
        ledger,
        'erase_personal_data',
        tokens.map(token => ({ token })),
        context,
      )
    const kinds = tokens.map(kindOf)
    const inserted = await sql(
      `insert into personal_texts (token, tenant_id, kind, digest, text, erased_at)
        select token, $1, kind, '', null, now() from unnest($2::text[], $3::text[]) as lost (token, kind)
        on conflict do nothing returning token`,
      [tenant, tokens, kinds],
    )
    if (inserted.length === 0) return { erased, erased_before: [] }
    erased.push(...tokens)
  }
}
