import { format } from 'node:util'
import Mocha from 'mocha'
import type { FileResult } from './messages.ts'

/** A mocha reporter that prints the tests of a file as `spec` does, and keeps its failures for the summary of the run. */

const { Base, Spec } = Mocha.reporters

/** One failure as mocha's summary prints it, with the number 1. */
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
