import { expect } from 'chai'
import { sourceOf } from '../architecture/repository.ts'

/** The runbook has a paragraph for each alert, which the alert links to, and none for an alert that does not exist. */

const RUNBOOK = 'scripts/ledger/RUNBOOK.md'
const PARTS = ['Means', 'Look at', 'Do']

const alerts = (): readonly { readonly name: string; readonly runbook: string | undefined }[] =>
  sourceOf('scripts/compose/alerts.yaml')
    .text.split(/^ {6}- (?=alert: )/m)
    .slice(1)
    .map(rule => ({
      name: /^alert: (\w+)$/m.exec(rule)?.[1] ?? '',
      runbook: /^ {10}runbook: (\S+)$/m.exec(rule)?.[1],
    }))

const paragraphs = (): readonly { readonly title: string; readonly parts: readonly string[] }[] =>
  sourceOf(RUNBOOK)
    .text.split(/^## /m)
    .slice(1)
    .map(text => ({
      title: text.slice(0, text.indexOf('\n')),
      parts: [...text.matchAll(/^\*\*(.+):\*\* \S/gm)].map(([, part = '']) => part),
    }))

describe('the runbook', () => {
  it('has what each alert links to', () => {
    expect(alerts().length).to.be.at.least(14)
    for (const { name, runbook } of alerts()) expect(runbook, name).to.equal(`${RUNBOOK}#${name.toLowerCase()}`)
    const titles = paragraphs().map(({ title }) => title)
    expect(
      alerts()
        .map(({ name }) => name)
        .filter(name => !titles.includes(name)),
    ).to.deep.equal([])
  })

  it('has a paragraph for no other alert, and in each what it means, what to look at and what to do', () => {
    const names = alerts().map(({ name }) => name)
    expect(paragraphs().map(({ title }) => title)).to.deep.equal(names)
    for (const { title, parts } of paragraphs()) expect(parts, title).to.deep.equal(PARTS)
  })
})
