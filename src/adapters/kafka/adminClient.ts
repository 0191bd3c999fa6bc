import type { Admin } from 'kafkajs'
import { BrokerAccessDenied, Unavailable } from '../../ports.ts'
import { type FactBusOptions, openClient, refusalOf } from './client.ts'

/** Existing topics have another number of partitions, or a shorter retention that this service may not lengthen. */
export class TopicMismatch extends Error {
  constructor(differences: readonly string[]) {
    super(`Kafka's topics differ from the contract: ${differences.join('; ')}.`)
    this.name = 'TopicMismatch'
  }
}

/** An admin connection for `work` alone. Throws TopicMismatch, BrokerAccessDenied, and Unavailable for every other error. */
export const withAdmin = async <T>(options: FactBusOptions, work: (admin: Admin) => Promise<T>): Promise<T> => {
  const client = openClient(options)
  try {
    const admin = client.admin()
    await admin.connect()
    return await work(admin)
  } catch (error) {
    if (error instanceof TopicMismatch) throw error
    const refusal = refusalOf(error, options)
    if (refusal !== undefined) throw new BrokerAccessDenied(refusal, error)
    throw new Unavailable('fact bus', { effect: 'unknown', cause: error })
  } finally {
    client.drop()
  }
}
