import { EventStoreDBClient } from '@eventstore/db-client'

/** The version of the server, for `ledger doctor`. */

/** The client asks for the features of the server with its first call, and keeps them to itself. */
class FeaturesClient extends EventStoreDBClient {
  async version(): Promise<string> {
    return (await this.capabilities).serverVersion
  }
}

/** The version that the server reports; the embedded event store reports that of the one it is compatible with. */
export const serverVersionOf = async (connectionString: string): Promise<string> => {
  // Connection strings are parsed into the base class only.
  const client: FeaturesClient = Object.setPrototypeOf(
    EventStoreDBClient.connectionString(connectionString),
    FeaturesClient.prototype,
  )
  try {
    return await client.version()
  } finally {
    await client.dispose()
  }
}
