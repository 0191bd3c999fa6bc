import { period, type PeriodEvent } from '../../streams/period/index.ts'
import { scenario } from '../support/scenario.ts'

const { given } = scenario(period.decider)

const closing = (through: string, complete_to: bigint) => ({ through, complete_to, reason: 'audited' })
const closed = (through: string, complete_to: bigint): PeriodEvent => ({
  type: 'PeriodClosed',
  data: closing(through, complete_to),
})
const close = (through: string, complete_to: bigint) => ({
  type: 'ClosePeriod' as const,
  ...closing(through, complete_to),
})

describe('the periods of a tenant', () => {
  it('are closed, each once', () => given().when(close('2026-01-31', 10n)).expectOnce(closed('2026-01-31', 10n)))
  it('are closed again through a later day', () =>
    given(closed('2026-01-31', 10n)).when(close('2026-02-28', 10n)).expectOnce(closed('2026-02-28', 10n)))
  it('that are closed stay as they are', () => {
    given(closed('2026-01-31', 10n)).when(close('2026-01-31', 20n)).expectNothing()
    given(closed('2026-01-31', 10n)).when(close('2025-12-31', 20n)).expectNothing()
  })
  it('are not closed by books that know less than at the last closing', () =>
    given(closed('2026-01-31', 10n)).when(close('2026-02-28', 9n)).expectRejected('concurrent_modification'))
})
