import { expect } from 'chai'
import { importsOf } from './source.ts'
import { sourceOf } from './repository.ts'

/**
 * kafkajs sets timers with negative times, of which Node warns; nobody who runs a command can do anything about that. So every
 * way to start a program that loads kafkajs turns the warning off. Processes that it forks inherit the flag.
 */

const FLAG = '--disable-warning=TimeoutNegativeWarning'

/** Whether the program loads it, now or later. */
const loadsKafkajs = (entry: string): boolean => {
  const reached = new Set([entry])
  // A set also visits what is added while it is read.
  for (const path of reached)
    if (path.endsWith('.ts'))
      for (const { target, typeOnly } of importsOf(sourceOf(path))) if (!typeOnly) reached.add(target)
  return reached.has('kafkajs')
}

const manifest = JSON.parse(sourceOf('package.json').text) as { readonly scripts: Readonly<Record<string, string>> }

describe('the warnings of Node about kafkajs', () => {
  it('are turned off in every script of package.json that loads it', () => {
    const commands = Object.entries(manifest.scripts)
      .map(([name, command]) => ({
        name,
        command,
        entry: command.startsWith('node ') ? command.match(/\S+\.ts\b/g)?.at(-1) : undefined,
      }))
      .filter(({ entry }) => entry !== undefined && loadsKafkajs(entry))
    expect(commands.map(({ name }) => name)).to.include.members(['start', 'ledger', 'bench'])
    expect(commands.filter(({ command }) => !command.includes(FLAG)).map(({ name }) => name)).to.deep.equal([])
  })

  it('are turned off for every program in the image', () => {
    expect(/^ENV [^]*?[^\\]$/m.exec(sourceOf('Dockerfile').text.split(/^FROM gcr/m)[1] ?? '')?.[0]).to.include(FLAG)
  })

  it('are turned off wherever a page or a script starts the service or the command line itself', () => {
    const starts = [
      'scripts/ledger/FIRST_HOUR.md',
      'scripts/bench/harness.ts',
      'test/upgrade/instances.ts',
      'test/scripts/cli.ts',
      '.mocharc.json',
    ]
    const name = FLAG.replace('--', '')
    expect(starts.filter(path => !sourceOf(path).text.includes(name))).to.deep.equal([])
  })
})
