import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { acceptConnections, type Connections } from '../../src/cluster/connections.ts'
import { eventually } from '../support/eventually.ts'

describe('the connections of a service of several processes', () => {
  let connections: Connections
  const clients: Socket[] = []
  const given: { readonly name: string; readonly socket: Socket }[] = []
  const serving = new Set<string>()
  const receiver = (name: string) => ({
    give: () => (serving.has(name) ? (socket: Socket) => void given.push({ name, socket }) : undefined),
  })

  beforeEach(async () => {
    const receivers = [receiver('one'), receiver('two'), receiver('three')]
    connections = await acceptConnections({ host: '127.0.0.1', port: 0 }, () => receivers)
  })
  afterEach(() => {
    connections.close()
    for (const socket of [...clients.splice(0), ...given.splice(0).map(one => one.socket)]) socket.destroy()
    serving.clear()
  })

  const open = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const client = connect(connections.port, '127.0.0.1')
      clients.push(client)
      await once(client, 'connect')
    }
  }
  const receivers = (): readonly string[] => given.map(({ name }) => name)

  it('are given to the processes in turn', async () => {
    for (const name of ['one', 'two', 'three']) serving.add(name)
    await open(6)
    await eventually(async () => given.length === 6)
    expect(receivers()).to.deep.equal(['one', 'two', 'three', 'one', 'two', 'three'])
  })

  it('are not given to a process that does not serve', async () => {
    serving.add('one').add('three')
    await open(4)
    await eventually(async () => given.length === 4)
    expect(receivers()).to.deep.equal(['one', 'three', 'one', 'three'])
  })

  it('wait while no process serves', async () => {
    await open(2)
    serving.add('two')
    await eventually(async () => {
      connections.distribute()
      return given.length === 2
    })
    expect(receivers()).to.deep.equal(['two', 'two'])
  })

  it('that wait end when the service ends', async () => {
    await open(1)
    const [client] = clients
    const ended = new Promise(resolve =>
      client
        ?.on('error', () => undefined)
        .resume()
        .once('close', resolve),
    )
    // The connection may be accepted by the system and not yet by the process: both ends are ends.
    connections.close()
    await ended
    expect(given).to.deep.equal([])
  })
})
