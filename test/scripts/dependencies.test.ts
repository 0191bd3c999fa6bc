import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { ACCEPTED, unacceptedOf } from '../../scripts/dependencies/advisories.ts'
import { isPermitted, licencesIn, productionLicences, STATED_ELSEWHERE } from '../../scripts/dependencies/licences.ts'
import type { Sbom } from '../../scripts/dependencies/sbom.ts'
import { findFreePort } from '../../src/embedded/freePorts.ts'
import { root } from '../architecture/repository.ts'
import { run } from './cli.ts'

/** What is known of the production dependencies: licences, advisories and the bill of materials. */

describe('the licences of the production dependencies', () => {
  it('are all permitted', async () => {
    const packages = await productionLicences()
    expect(packages.filter(({ licence }) => !isPermitted(licence))).to.deep.equal([])
    const names = packages.map(({ name }) => name)
    expect(names).to.include.members(['pg', 'express', '@eventstore/db-client', 'zod']).and.not.to.include('mocha')
  })

  it('are stated where this repository says so, if the manifest of the package states none', () => {
    for (const [name, { file }] of Object.entries(STATED_ELSEWHERE)) {
      const path = join(root, file)
      expect(existsSync(path), name).to.equal(true)
      expect(readFileSync(path, 'utf8')).to.include('Permission is hereby granted, free of charge')
    }
  })

  it('are refused if any part is not permitted, if there is a choice, and if there is none', () => {
    const licences = ['GPL-3.0-only', 'MIT AND GPL-3.0-only', '(MIT OR GPL-3.0-only)', 'no licence']
    expect(licences.filter(isPermitted)).to.deep.equal([])
    expect(['MIT', '(MIT AND ISC)'].every(isPermitted)).to.equal(true)
    const packages = { '': {}, 'node_modules/a': { version: '1.0.0' }, 'node_modules/b': { dev: true, license: 'MIT' } }
    expect(licencesIn(packages)).to.deep.equal([{ name: 'a', version: '1.0.0', licence: 'no licence' }])
  })
})

describe('the bill of materials', () => {
  it('has every production dependency with its hash, and no other', async () => {
    const { code, stdout } = await run('dependencies.ts', ['sbom'], {})
    expect(code).to.equal(0)
    const { components } = JSON.parse(stdout) as Sbom
    const named = ({ name, version }: { name: string; version: string }): string => `${name}@${version}`
    expect(components.map(named)).to.have.members((await productionLicences()).map(named))
    expect(components.filter(({ hashes = [] }) => hashes.length === 0)).to.deep.equal([])
  })
})

describe('the advisories on production dependencies', () => {
  /** With a registry that has this advisory on these packages. */
  const auditWith = async (packages: readonly string[]) => {
    const advisory = {
      id: 1,
      url: 'https://github.com/advisories/GHSA-test-test-test',
      title: 'A test',
      severity: 'high',
      vulnerable_versions: '*',
      cwe: [],
      cvss: { score: 7, vectorString: null },
    }
    const registry = createServer((req, res) => {
      const isAudit = req.url?.endsWith('/advisories/bulk') === true
      req.resume()
      res.writeHead(isAudit ? 200 : 404, { 'content-type': 'application/json' })
      res.end(JSON.stringify(isAudit ? Object.fromEntries(packages.map(name => [name, [advisory]])) : {}))
    }).listen(0, '127.0.0.1')
    await once(registry, 'listening')
    const { port } = registry.address() as AddressInfo
    try {
      return await run('dependencies.ts', ['audit'], { npm_config_registry: `http://127.0.0.1:${port}` })
    } finally {
      registry.closeAllConnections()
      registry.close()
    }
  }

  it('fail the audit, also on a package that development uses too, but not on one for development alone', async () => {
    const { code, stdout } = await auditWith(['pg', 'mocha'])
    expect([code, stdout]).to.deep.equal([
      1,
      'high: pg: A test (GHSA-test-test-test); not accepted\n1 advisories on production dependencies, 1 not accepted.\n',
    ])
  })

  it('are not checked where the registry cannot be reached, which fails nothing', async () => {
    const registry = `http://127.0.0.1:${await findFreePort('127.0.0.1')}`
    const { code, stdout } = await run('dependencies.ts', ['audit'], {
      npm_config_registry: registry,
      npm_config_fetch_retry_mintimeout: '1',
    })
    expect(code).to.equal(0)
    expect(stdout).to.match(/^Not checked, because the registry gives no advisories: .*ECONNREFUSED/)
  })

  it('are accepted up to a day', () => {
    const one = { advisory: 'GHSA-a', name: 'a', severity: 'low', title: 'A' }
    const accepted = [{ advisory: 'GHSA-a', reason: 'It concerns a parser that is not used.', until: '2027-01-31' }]
    const on = (day: string) => unacceptedOf([one], new Date(`${day}T23:59:59Z`), accepted)
    expect(on('2027-01-31')).to.deep.equal([])
    expect(on('2027-02-01')).to.deep.equal([{ ...one, why: 'accepted until 2027-01-31 only' }])
    expect(unacceptedOf([one], new Date(), [])).to.deep.equal([{ ...one, why: 'not accepted' }])
  })

  it('are accepted with a reason and a day alone', () => {
    for (const { advisory, reason, until } of ACCEPTED) {
      expect(advisory).to.match(/^GHSA(-\w{4}){3}$/)
      expect(reason.length, advisory).to.be.at.least(20)
      expect(new Date(until).toISOString().slice(0, 10), advisory).to.equal(until)
    }
  })
})
