import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { removeFolder } from '../support/folders.ts'
import { temporaryDirectory } from '../support/service.ts'

/** Prometheus with the configuration and the alerts of the compose set-up, changed for the test. */

/** The part of its answers that is read here. */
export type Answer = {
  readonly data: {
    readonly result: readonly { readonly value: readonly [number, string] }[]
    readonly groups: readonly { readonly rules: readonly { readonly lastError?: string }[] }[]
  }
}

type Options = {
  readonly configuration: (usual: string) => string
  readonly alerts?: (usual: string) => string
  /** Replaces /etc/resolv.conf for it, which needs root. */
  readonly resolver?: string
}

const usual = (name: string): Promise<string> =>
  readFile(new URL(`../../scripts/compose/${name}`, import.meta.url), 'utf8')

export const startPrometheus = async ({ configuration, alerts = text => text, resolver }: Options) => {
  const folder = await temporaryDirectory()
  const path = (name: string): string => join(folder, name)
  await mkdir(path('data'))
  await writeFile(path('prometheus.yaml'), configuration(await usual('prometheus.yaml')))
  await writeFile(path('alerts.yaml'), alerts(await usual('alerts.yaml')))
  await writeFile(path('resolv.conf'), resolver ?? '')
  const isolated = ['--mount', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', path('resolv.conf')]
  const command = [
    ...(resolver === undefined ? [] : ['unshare', ...isolated]),
    'prometheus',
    `--config.file=${path('prometheus.yaml')}`,
    `--storage.tsdb.path=${path('data')}`,
    '--web.listen-address=127.0.0.1:0',
  ]
  const [program = '', ...args] = command
  const prometheus = spawn(program, args)
  const ended = once(prometheus, 'close')
  let output = ''
  prometheus.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const address = await eventually(() => /msg="Listening on" address=(\S+)/.exec(output)?.[1])
  const ask = async (question: string) => (await (await fetch(`http://${address}/api/v1/${question}`)).json()) as Answer
  return {
    ask,
    /** Of the first series; undefined without one, and while it starts. */
    valueOf: async (query: string): Promise<string | undefined> => {
      const answer = await ask(`query?query=${encodeURIComponent(query)}`).catch(() => undefined)
      return answer?.data.result[0]?.value[1]
    },
    close: async () => {
      prometheus.kill('SIGTERM')
      await ended
      await removeFolder(folder)
    },
  }
}
