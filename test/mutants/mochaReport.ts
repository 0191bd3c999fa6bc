/** A parser for the first failure in a report of mocha's `xunit` reporter. The `json` reporter loses failures with bigints. */

export type FailedTest = { readonly file: string; readonly title: string; readonly message: string }

const FAILED =
  /<testcase classname="(?<suite>[^"]*)" name="(?<name>[^"]*)" file="(?<file>[^"]*)"[^>]*><failure>(?<message>[^<]*)/
const ENTITY = /&(?:#x(?<code>[0-9a-f]+)|(?<name>amp|quot|lt|gt|apos));/gi
const NAMED: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>', apos: "'" }

const decoded = (text: string): string =>
  text.replaceAll(ENTITY, (whole, code?: string, name?: string) =>
    code === undefined ? (NAMED[name ?? ''] ?? whole) : String.fromCodePoint(Number.parseInt(code, 16)),
  )

export const failedTestIn = (report: string): FailedTest | undefined => {
  const { suite = '', name = '', file = '', message = '' } = FAILED.exec(report)?.groups ?? {}
  return file === ''
    ? undefined
    : { file: decoded(file), title: decoded(`${suite} ${name}`), message: decoded(message.split('\n')[0] ?? '') }
}
