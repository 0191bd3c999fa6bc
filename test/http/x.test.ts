import { startProcess, temporaryDirectory } from '../support/service.ts'
import { execSync } from 'node:child_process'
describe('x', function () {
  this.timeout(90000)
  it('times', async () => {
    const dir = await temporaryDirectory()
    const a = await startProcess(dir)
    let t = Date.now()
    let over: any
    void a.ended.then(e => (over = [e, Date.now() - t]))
    while (!over && Date.now() - t < 60000) {
      let pids = ''
      try {
        pids = execSync(
          `pgrep -f "eventstore/main.ts --database-url ${a.addresses.postgres.replace('/ledger', '/eventstore')}"`,
        )
          .toString()
          .trim()
      } catch {}
      for (const pid of pids.split('\n').filter(Boolean))
        try {
          process.kill(Number(pid), 'SIGKILL')
        } catch {}
      await new Promise(r => setTimeout(r, 300))
    }
    console.log(over, a.output().split('\n').slice(-4))
  })
})
