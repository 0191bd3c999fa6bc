import type { Database, FactBus, FactMessage } from '../ports.ts'

/**
 * The base URL of every `dataschema`, stored at the first start, because a fact must be delivered again with the same
 * bytes. A default is replaced by the first address that an operator sets.
 */
export const rememberSchemaBaseUrl = async (
  { transaction }: Pick<Database, 'transaction'>,
  { publicUrl, isSet }: { readonly publicUrl: string; readonly isSet: boolean },
): Promise<string> =>
  transaction(async sql => {
    await sql(
      `insert into fact_base (id, url, is_set) values (1, $1, $2)
        on conflict (id) do update set url = excluded.url, is_set = true where excluded.is_set and not fact_base.is_set`,
      [publicUrl, isSet],
    )
    const [row] = await sql<{ url: string }>('select url from fact_base where id = 1')
    return row?.url ?? publicUrl
  })

const withBase = (message: FactMessage, base: string): FactMessage => {
  const path = message.headers['ce_dataschema']
  return path === undefined ? message : { ...message, headers: { ...message.headers, ce_dataschema: `${base}${path}` } }
}

/** The bus with absolute URIs in `dataschema` (CloudEvents 1.0). */
export const withSchemaBaseUrl = (bus: FactBus, base: string): FactBus => ({
  ...bus,
  publish: messages => bus.publish(messages.map(message => withBase(message, base))),
})
