import type { Admin } from 'kafkajs'
import { Unavailable } from '../../ports.ts'
import { type FactBusOptions, FactBusRefused, openClient, refusalOf } from './client.ts'

/** Topics are there with other settings than the contract's; changing them is an operator's decision. */
export class TopicMismatch extends Error {
  constructor(differences: readonly string[]) {
    super(`Kafka's topics differ from the contract: ${differences.join('; ')}.`)
    this.name = 'TopicMismatch'
  }
}

/**
 * Does the work over a connection of its own, which is closed afterwards. Throws TopicMismatch as it comes, FactBusRefused
 * when we may not, and Unavailable for the rest.
 */
export const withAdmin = async <T>(options: FactBusOptions, work: (admin: Admin) => Promise<T>): Promise<T> => {
  const client = openClient(options)
  try {
    const admin = client.admin()
    await admin.connect()
    return await work(admin)
  } catch (error) {
    if (error instanceof TopicMismatch) throw error
    const refusal = refusalOf(error, options)
    if (refusal !== undefined) throw new FactBusRefused(refusal, error)
    throw new Unavailable('fact bus', 'unknown', error)
  } finally {
    client.drop()
  }
}
