import { stopKafkaForTests } from './kafka.ts'
import { closeSharedService } from './service.ts'

/** Ends the service and the broker that the files of one process share. */
export const closeShared = async (): Promise<void> => {
  await closeSharedService()
  await stopKafkaForTests()
}

export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(60_000)
    await closeShared()
  },
}
