import { expect } from 'chai'
import { manifest, type Manifest, type ManifestEvent, nextPosition } from '../../streams/manifest/index.ts'
import { scenario, stateAfter } from '../support/scenario.ts'

const { given } = scenario(manifest.decider)

const of = (from: bigint, to: bigint, more: Partial<Manifest> = {}): Manifest => ({
  topic: 'ledger.invoice.v1',
  from_position: from,
  to_position: to,
  count: 3,
  sha256: 'ab'.repeat(32),
  ...more,
})
const seal = (...args: Parameters<typeof of>) => ({ type: 'SealManifest', ...of(...args) }) as const
const sealed = (...args: Parameters<typeof of>): ManifestEvent => ({ type: 'ManifestSealed', data: of(...args) })

describe('the manifests of a topic', () => {
  it('begin at the beginning of the log', () => given().when(seal(0n, 99n)).expectOnce(sealed(0n, 99n)))

  it('continue at the position after the previous one', () =>
    given(sealed(0n, 99n)).when(seal(100n, 250n)).expectOnce(sealed(100n, 250n)))

  it('may contain no facts', () => {
    const empty = { count: 0, sha256: 'e3'.repeat(32) }
    given(sealed(0n, 99n))
      .when(seal(100n, 100n, empty))
      .expectOnce(sealed(100n, 100n, empty))
  })

  it('never overlap and never leave a gap', () => {
    given().when(seal(1n, 99n)).expectRejected('concurrent_modification')
    for (const from of [0n, 50n, 99n, 101n, 250n])
      given(sealed(0n, 99n)).when(seal(from, 300n)).expectRejected('concurrent_modification')
  })

  it('are not sealed when the log has no new position', () => {
    given(sealed(0n, 99n)).when(seal(100n, 99n)).expectNothing()
    given(sealed(0n, 99n)).when(seal(100n, 42n)).expectNothing()
  })

  it('are sealed once; another one of the same range is refused as a concurrent modification', () => {
    given(sealed(0n, 99n)).when(seal(0n, 99n)).expectNothing()
    for (const other of [{ count: 4 }, { sha256: 'cd'.repeat(32) }, { topic: 'ledger.order.v1' }])
      given(sealed(0n, 99n))
        .when(seal(0n, 99n, other))
        .expectRejected('concurrent_modification')
  })

  it('determine where the next one begins', () => {
    expect(nextPosition(manifest.decider.initial)).to.equal(0n)
    expect(nextPosition(stateAfter(manifest.decider, [sealed(0n, 99n), sealed(100n, 2n ** 63n)]))).to.equal(
      2n ** 63n + 1n,
    )
  })

  it('have exact positions beyond the precision of doubles', () => {
    const event = sealed(2n ** 63n, 2n ** 64n - 1n)
    const { data } = manifest.codec.encode(event)
    expect(data).to.include({ from_position: '9223372036854775808', to_position: '18446744073709551615' })
    expect(manifest.codec.decode('ManifestSealed', data, 1)).to.deep.equal(event)
  })
})
