/** `npm run bench`: compares the service with minimal reference implementations on the same machine, in one run. */

import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, release } from 'node:os'
import { dirname, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { appends } from './appends.ts'
import { cold } from './cold.ts'
import type { Measure, Row } from './measure.ts'
import { payments } from './payments.ts'
import { publish } from './publish.ts'
import { reads } from './reads.ts'
import { rebuild } from './rebuild.ts'
import { createHarness } from './harness.ts'
import { tableOf } from './table.ts'

const MEASURES: readonly Measure[] = [payments, reads, appends, cold, rebuild, publish]
const SECONDS = 6
const PAYMENTS = 20_000

type Options = { only?: string[]; seconds: number; payments: number; json: string }

const positive = (text: string): number => {
  const number = Number(text)
  if (Number.isFinite(number) && number > 0) return number
  throw new InvalidArgumentError('A number above zero.')
}

const named = (text: string): string[] => {
  const names = text.split(',')
  const unknown = names.find(name => !MEASURES.some(measure => measure.name === name))
  if (unknown === undefined) return names
  throw new InvalidArgumentError(`One of ${MEASURES.map(({ name }) => name).join(', ')}.`)
}

const described = MEASURES.map(({ name, description: what }) => `  ${name.padEnd(9)} ${what}`).join('\n')

const options = (): Options =>
  new Command('bench')
    .description('Measures the service against references on the same machine, side by side, and prints one table.')
    .option('--only <names>', 'some of the measures, separated by commas', named)
    .option('--seconds <seconds>', 'for each side of a comparison', positive, SECONDS)
    .option('--payments <count>', 'how long a log "rebuild" and "publish" go through', positive, PAYMENTS)
    .option('--json <file>', 'where the figures go beside the table', '.data/bench.json')
    .addHelpText(
      'after',
      `\nMeasures:\n${described}\n\nGoals are ratios, since machines differ. Exit code 1: a goal was missed.`,
    )
    .parse()
    .opts<Options>()

const machine = () => ({
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  system: `${process.platform} ${release()}`,
  node: process.version,
})

const save = async (file: string, report: object): Promise<void> => {
  const path = resolve(file)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${JSON.stringify(report, null, 2)}\n`)
}

const main = async ({ only, seconds, payments, json }: Options): Promise<void> => {
  const begun = performance.now()
  const log = (line: string): void => {
    process.stderr.write(`${((performance.now() - begun) / 1000).toFixed(0).padStart(4)} s  ${line}\n`)
  }
  const harness = await createHarness(log)
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      log('ending what was started')
      void harness.stop().finally(() => process.exit(130))
    })
  const rows: Row[] = []
  try {
    for (const measure of MEASURES)
      if (only === undefined || only.includes(measure.name))
        rows.push(...(await measure.run(harness, { seconds, payments })))
  } finally {
    await harness.stop()
  }
  process.stdout.write(`${tableOf(rows)}\n`)
  await save(json, { at: new Date().toISOString(), machine: machine(), seconds, payments, rows })
  process.exitCode = rows.every(({ met }) => met !== false) ? 0 : 1
}

await main(options())
