import { format } from 'node:util'
import Mocha from 'mocha'
import type { FileResult } from './messages.ts'

/** Prints a file as mocha's own reporter does, and keeps its failures as texts instead of a summary. */

const { Base, Spec } = Mocha.reporters

/** The text of one failure in the summary of mocha, as the first of a list. */
const textOf = (failure: Mocha.Test): string => {
  const lines: string[] = []
  const { consoleLog } = Base
  Base.consoleLog = (...parts: unknown[]) => void lines.push(format(...parts))
  try {
    Base.list([failure])
  } finally {
    Base.consoleLog = consoleLog
  }
  return lines.join('\n').trimEnd()
}

export class FileReporter extends Spec {
  static last: FileResult = { passed: 0, failures: [] }

  override epilogue(): void {
    const failures = this.failures.map(textOf)
    FileReporter.last = { passed: this.stats.passes, failures }
    for (const text of failures) process.stdout.write(`${text}\n`)
  }
}
