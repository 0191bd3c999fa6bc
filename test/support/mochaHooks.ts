import { closers } from './closers.ts'
import { closeSharedPostgres } from './postgres.ts'
import { removePreparedBroker } from './preparedBroker.ts'
import { removePreparedCluster } from './preparedCluster.ts'
import { closeSharedService } from './service.ts'

/** Stops the service, the database server and the broker that the files of one process share. */
export const closeShared = async (): Promise<void> => {
  await closeSharedService()
  await closeSharedPostgres()
  for (const close of closers) await close()
  await removePreparedCluster()
  await removePreparedBroker()
}

export const mochaHooks = { afterAll: closeShared }
