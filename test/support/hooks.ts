import { stopKafkaForTests } from './kafka.ts'
import { closeSharedService } from './service.ts'

/** What the whole run shares ends with it. */
export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    this.timeout(60_000)
    await closeSharedService()
    await stopKafkaForTests()
  },
}
