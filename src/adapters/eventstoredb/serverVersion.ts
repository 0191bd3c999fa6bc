import { Client } from './client.ts'

/** The version of the server, for `ledger doctor`. */
export const serverVersionOf = async (connectionString: string): Promise<string> => {
  const client = new Client(connectionString)
  try {
    return await client.serverVersion()
  } finally {
    await client.dispose()
  }
}
