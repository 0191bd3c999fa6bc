import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { createCleanupStack } from '../../src/lib/cleanupStack.ts'
import { StartupError } from '../../src/lib/startupError.ts'
import { type Build, copyBuild, openBuild } from '../support/builds.ts'
import { removeFolder } from '../support/folders.ts'
import { rejectionOf } from '../support/rejection.ts'
import { temporaryDirectory } from '../support/service.ts'
import { type Engine, openEngine } from './postgres.ts'
import { busyMsBeside } from './replacements.ts'
import { type LoadedBuild, loadBuild } from './simulatedBuilds.ts'
import { simulate } from './simulate.ts'

/** Short; `npm run simulate -- --beside` runs for an hour. */
const SIDE_BY_SIDE_MS = 30_000
const SEED = 1

describe('the simulation of two builds', () => {
  const cleanup = createCleanupStack(error => process.stderr.write(`${String(error)}\n`))
  let folder: string
  let engine: Engine

  before(async () => {
    folder = await temporaryDirectory()
    cleanup.defer(() => removeFolder(folder))
    engine = await openEngine()
  })
  after(() => cleanup.run())

  /** A copy of these sources where no commit can be loaded: without Git, or beside another src/ports.ts. */
  const lastCommit = async (): Promise<{ readonly build: Build; readonly loaded: LoadedBuild }> => {
    try {
      const build = await openBuild('HEAD', folder, cleanup)
      return { build, loaded: await loadBuild(build) }
    } catch (error) {
      if (!(error instanceof StartupError)) throw error
      process.stdout.write(`    beside a copy of these sources, not the last commit: ${error.message}\n`)
      const build = await copyBuild(folder, 'copy')
      return { build, loaded: await loadBuild(build) }
    }
  }

  const run = async (other: LoadedBuild) => {
    const { violations, counts, sideBySideMs } = await simulate(engine, {
      seed: SEED,
      busyMs: busyMsBeside(SIDE_BY_SIDE_MS),
      other,
    }).then(outcome => ({ ...outcome, counts: outcome.history.counts }))
    return { counts, sideBySideMs, broken: violations.map(({ promise, detail }) => `${promise}: ${detail}`) }
  }

  it('keeps every promise beside the last commit, whose own code runs', async () => {
    const { build, loaded } = await lastCommit()
    const { broken, counts, sideBySideMs } = await run(loaded)
    expect(broken.join('\n')).to.equal('')
    expect(sideBySideMs).to.be.at.least(SIDE_BY_SIDE_MS)
    for (const name of [`replacements by ${loaded.name}`, 'replacements by this build'])
      expect(counts.get(name), name).to.be.above(0)
    expect(counts.get('leases taken over from the other build')).to.be.above(0)
    const urlOf = (path: string): string => pathToFileURL(join(build.root, path)).href
    expect([...loaded.modules]).to.include.members(
      [
        'streams/payment/decider.ts',
        'projections/invoices/projection.ts',
        'src/http/requestPipeline.ts',
        'src/feeds/projector.ts',
        'src/commands/payments.ts',
      ].map(urlOf),
    )
    expect([...loaded.modules]).not.to.include(urlOf('src/ports.ts'))
  })

  it('finds a defect that only the other build has', async () => {
    const faulty = await copyBuild(folder, 'faulty', {
      'projections/invoices/projection.ts': text => text.replace('approved_by: data.approved_by', 'approved_by: null'),
    })
    const { broken } = await run(await loadBuild(faulty))
    expect(broken.join('\n')).to.include('a read model is the fold of the streams: invoices_v1')
  })

  it('refuses a build with other error classes at its ports', async () => {
    const other = await copyBuild(folder, 'other', {
      'src/ports.ts': text => text.replace('class FactTooLarge', 'class FactTooBig'),
    })
    const error = await rejectionOf(loadBuild(other))
    expect(error).to.be.instanceOf(StartupError)
    expect(String(error)).to.include('src/ports.ts differ in').and.include('FactTooLarge')
  })
})
