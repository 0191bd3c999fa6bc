import { stopKafkaForTests } from './kafka.ts'
import { closeSharedPostgres } from './postgres.ts'
import { removePreparedBroker } from './preparedBroker.ts'
import { removePreparedCluster } from './preparedCluster.ts'
import { closeSharedService } from './service.ts'

/** Stops the service, the database server and the broker that the files of one process share. */
export const closeShared = async (): Promise<void> => {
  await closeSharedService()
  await closeSharedPostgres()
  await stopKafkaForTests()
  await removePreparedCluster()
  await removePreparedBroker()
}

export const mochaHooks = { afterAll: closeShared }
