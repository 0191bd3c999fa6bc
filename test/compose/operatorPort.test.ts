import { expect } from 'chai'
import { type OperatorPort, openOperatorPort } from '../../src/compose/operatorPort.ts'
import { readConfig } from '../../src/settings/config.ts'

const text = async (): Promise<string> => 'ledger_up 1\n'
const portOf = ({ address }: OperatorPort): number => Number(new URL(address).port)

describe('the metrics port', () => {
  it('is the same at each start, unless PORT is any', () => {
    expect(readConfig({}).metrics).to.deep.equal({ host: '127.0.0.1', port: 9464, isDefault: true })
    expect(readConfig({ PORT: '0' }).metrics?.port).to.equal(0)
    expect(readConfig({ METRICS_PORT: '0' }).metrics).to.include({ port: 0, isDefault: false })
    expect(readConfig({ METRICS_PORT: 'off' }).metrics).to.equal(undefined)
  })

  it('is another one where the default is in use, and a chosen one is refused', async () => {
    const first = await openOperatorPort({ host: '127.0.0.1', port: 0, isDefault: true }, text)
    const port = portOf(first)
    const second = await openOperatorPort({ host: '127.0.0.1', port, isDefault: true }, text)
    try {
      expect(portOf(second)).not.to.equal(port)
      expect(await (await fetch(second.address)).text()).to.equal(await text())
      const refused = await openOperatorPort({ host: '127.0.0.1', port, isDefault: false }, text).catch(String)
      expect(refused).to.include(`The metrics port ${port} is in use. Set METRICS_PORT`)
    } finally {
      await Promise.all([first.close(), second.close()])
    }
  })
})
