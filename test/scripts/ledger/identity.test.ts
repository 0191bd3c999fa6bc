import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { isRedirectUri } from '../../../src/embedded/issuer/clients.ts'
import { isPassword } from '../../../src/embedded/issuer/passwords.ts'
import { loadUsers } from '../../../src/embedded/issuer/users.ts'
import { generateTestKey } from '../../support/tokens.ts'
import { start } from '../cli.ts'
import { emptyFolder, ledger, tidyUp } from './fixtures.ts'

const REDIRECT = 'http://127.0.0.1:4000/callback'

describe('npm run ledger: clients, users and the issuer', () => {
  let folder: string
  beforeEach(async () => {
    folder = await emptyFolder()
  })
  after(tidyUp)

  const outputOf = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ledger(args, folder)
    expect([code, stderr], args.join(' ')).to.deep.equal([0, ''])
    return stdout
  }
  const resultOf = async (...args: string[]) => JSON.parse(await outputOf(...args, '--json'))
  const refusalOf = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ledger(args, folder)
    expect([code, stdout], args.join(' ')).to.deep.equal([2, ''])
    expect(stderr).to.match(/^[^\n]+\n$/)
    return stderr
  }

  it('have help texts that mention --json', async () => {
    const commands = ['clients list', 'clients add', 'clients remove', 'clients rotate-secret', 'issuer rotate-key']
    const all = [...commands, 'users list', 'users add', 'users set-password', 'users remove']
    const helps = await Promise.all(all.map(command => outputOf(...command.split(' '), '--help')))
    for (const [index, help] of helps.entries())
      expect(help).to.include(`Usage: ledger ${all[index]}`).and.to.include('--json')
  })

  it('accept redirect URIs that can be compared exactly, with http for this machine only', () => {
    const good = [
      'https://books.test/',
      'https://books.test/a?b=c',
      'http://localhost:1/',
      'http://127.0.0.1/',
      REDIRECT,
    ]
    const bad = ['http://books.test/', 'https://books.test', 'https://books.test/#', 'https://me@books.test/', 'books']
    const worse = ['javascript:alert(1)', 'data:text/html,x', 'HTTPS://books.test/', 'https://books.test/../a', '']
    for (const uri of [...good, 'http://[::1]:4000/']) expect(isRedirectUri(uri), uri).to.equal(true)
    for (const uri of [...bad, ...worse]) expect(isRedirectUri(uri), uri).to.equal(false)
  })

  it('register applications of every kind, list them without a secret, and remove them', async () => {
    const key = join(folder, 'keys.json')
    await writeFile(key, JSON.stringify({ keys: [(await generateTestKey()).publicJwk] }))
    const of = ['--tenant', 'acme', '--scope', 'orders:read  orders:write orders:read']
    const web = await resultOf(
      'clients',
      'add',
      'web',
      ...of,
      '--public',
      '--redirect-uri',
      REDIRECT,
      '--name',
      'Books',
    )
    expect(web).to.deep.equal({
      client_id: 'web',
      name: 'Books',
      tenant: 'acme',
      scope: 'orders:read orders:write',
      redirect_uris: [REDIRECT],
      proof: 'none',
      acts_for: 'users',
    })
    const server = await resultOf('clients', 'add', 'server', ...of, '--redirect-uri', REDIRECT, 'https://books.test/')
    expect(server).to.include({ proof: 'client_secret', acts_for: 'users' })
    expect(await resultOf('clients', 'add', 'keyed', ...of, '--jwks', key)).to.include({ proof: 'private_key_jwt' })
    expect(await outputOf('clients', 'add', 'job', ...of)).to.match(/^job of acme is registered\.\nsecret {2}\S{43}\n$/)
    const list = await outputOf('clients', 'list', '--json')
    // Four of these, and for each of two tenants a workload and the page /docs.
    expect(JSON.parse(list).clients).to.have.length(8)
    expect(list).to.not.include(server.client_secret)
    expect(await outputOf('clients', 'list')).to.match(
      /^web +acme +public +acts for users +http:\/\/127\.0\.0\.1:4000\/callback$/m,
    )
    const { client_secret } = await resultOf('clients', 'rotate-secret', 'server')
    expect(client_secret)
      .to.match(/^\S{43}$/)
      .and.not.equal(server.client_secret)
    await outputOf('clients', 'remove', 'web')
    expect(await refusalOf('clients', 'remove', 'web')).to.include('ledger clients list')
    expect((await stat(join(folder, 'issuer', 'clients.json'))).mode & 0o777).to.equal(0o600)
  })

  it('report an invalid application, with instructions', async () => {
    const add = (...args: string[]) => refusalOf('clients', 'add', ...args)
    const of = ['--tenant', 'acme', '--scope', 'orders:read']
    expect(await add('web', ...of, '--public')).to.include('name the redirect URI')
    expect(await add('dev-acme', ...of)).to.include('ledger clients remove dev-acme')
    expect(await add('we b', ...of)).to.include('The id is')
    expect(await add('web', '--tenant', 'Acme', '--scope', 'orders:read')).to.include('The tenant is')
    expect(await add('web', '--tenant', 'acme', '--scope', 'orders:reed')).to.include('orders:read,')
    expect(await add('web', ...of, '--jwks', join(folder, 'none.json'))).to.include('is not a file with a key set')
    expect(await add('web', ...of, '--redirect-uri', 'http://books.test/')).to.include('A redirect URI is https')
    expect(await refusalOf('clients', 'rotate-secret', 'nobody')).to.include('There is no client "nobody"')
  })

  it('register users, print a generated password once, and store its hash alone', async () => {
    expect(
      (await resultOf('users', 'list')).users.map((user: { username: string; password_set_at: null }) => [
        user.username,
        user.password_set_at,
      ]),
    ).to.deep.equal([
      ['alice', null],
      ['bob', null],
      ['carol', null],
      ['dana', null],
      ['olga', null],
    ])
    const { password } = await resultOf('users', 'set-password', 'alice')
    const printed = await outputOf('users', 'add', 'dora', '--tenant', 'acme', '--scope', 'orders:read')
    expect(printed).to.match(/^password of dora {2}\S{20}\n$/)
    const stored = await readFile(join(folder, 'issuer', 'users.json'), 'utf8')
    expect(stored).to.not.include(password).and.not.include(printed.trim().split('  ')[1])
    expect((await stat(join(folder, 'issuer', 'users.json'))).mode & 0o777).to.equal(0o600)
    const alice = (await loadUsers(folder)).find(({ username }) => username === 'alice')
    expect(await isPassword(password, alice?.password)).to.equal(true)
    expect(await isPassword(`${password}x`, alice?.password)).to.equal(false)
    expect(await outputOf('users', 'list')).to.match(
      /^alice +acme +password set \d{4}-.*\nbob +acme +no password yet$/m,
    )
    await outputOf('users', 'remove', 'dora')
    expect(await refusalOf('users', 'remove', 'dora')).to.include('ledger users list')
    expect(await refusalOf('users', 'add', 'Dora', '--tenant', 'acme', '--scope', 'orders:read')).to.include(
      'A user name is',
    )
    expect(await refusalOf('users', 'add', 'bob', '--tenant', 'acme', '--scope', 'orders:read')).to.include(
      'ledger users set-password bob',
    )
  })

  it('read a password from stdin, and never print it', async () => {
    const pipe = (typed: string) =>
      start('ledger.ts', ['users', 'set-password', 'bob', '--password-stdin'], { LEDGER_DATA_DIR: folder }, typed).ended
    const { code, stdout, stderr } = await pipe('correct horse battery\nignored\n')
    expect([code, stdout, stderr]).to.deep.equal([0, 'bob has the password that was piped in.\n', ''])
    const bob = (await loadUsers(folder)).find(({ username }) => username === 'bob')
    expect(await isPassword('correct horse battery', bob?.password)).to.equal(true)
    expect(await pipe('short')).to.include({ code: 2, stderr: 'A password has 12 to 256 characters.\n' })
  })

  it('rotate the key with or without an overlap', async () => {
    const first = await resultOf('issuer', 'rotate-key')
    const second = await resultOf('issuer', 'rotate-key')
    expect(second.retiring.map(({ kid }: { kid: string }) => kid))
      .to.include(first.kid)
      .and.have.length(2)
    expect(Date.parse(second.retiring[0].until) - Date.now()).to.be.within(900_000, 1_000_000)
    const last = await resultOf('issuer', 'rotate-key', '--now')
    expect(last.retiring).to.deep.equal([])
    expect((await stat(join(folder, 'issuer', 'signing-key.json'))).mode & 0o777).to.equal(0o600)
  })

  it('have every change when several processes change the list concurrently', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(names.map(name => outputOf('clients', 'add', name, '--tenant', 'acme', '--scope', 'orders:read')))
    const { clients } = await resultOf('clients', 'list')
    expect(clients.map(({ client_id }: { client_id: string }) => client_id)).to.include.members(names)
  })

  it('are refused for an external issuer', async () => {
    const env = { OIDC_ISSUER: 'https://login.test', OIDC_AUDIENCE: 'ledger' }
    for (const args of [
      ['clients', 'list'],
      ['users', 'list'],
      ['issuer', 'rotate-key'],
    ]) {
      const { code, stderr } = await ledger(args, folder, env)
      expect([code, stderr]).to.deep.equal([
        2,
        'OIDC_ISSUER is https://login.test, which keeps its own: this command works with the embedded issuer only.\n',
      ])
    }
  })
})
