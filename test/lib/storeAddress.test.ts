import { expect } from 'chai'
import { withoutPassword } from '../../scripts/ledger/connections.ts'
import { asEsdb, parseStoreAddress } from '../../src/lib/storeAddress.ts'

describe('a connection string of the event store', () => {
  for (const scheme of ['esdb', 'kurrentdb', 'kdb'])
    for (const discover of ['', '+discover'])
      it(`has the same parts with the scheme ${scheme}${discover}, and is shown without its password`, () => {
        const rest = '://u:p%40s/s?@a.example:2113,b.example?tls_ca_file=/a+b%20c=d.pem&TLS=false&tls=true'
        const address = `${scheme}${discover}${rest}`
        const { setting, ...parts } = parseStoreAddress(address) ?? { setting: () => undefined }
        expect(parts).to.deep.include({
          hosts: ['a.example:2113', 'b.example'],
          discovers: discover !== '',
          credentials: { user: 'u', password: 'p@s/s?' },
        })
        expect(['tlscafile', 'tls', 'usercertfile'].map(setting)).to.deep.equal(['/a+b c=d.pem', 'true', undefined])
        expect(asEsdb(` ${address} `)).to.equal(`esdb${discover}${rest}`)
        expect(withoutPassword(address)).to.equal(`${scheme}${discover}://u:…@${rest.split('@')[1]}`)
      })

  it('is none with another scheme, without a host, and with a broken escape', () => {
    for (const text of [
      'http://store',
      'kurrent://store',
      'esdb://',
      'kdb://?tls=false',
      'store:2113',
      'esdb://u:%@store',
    ])
      expect(parseStoreAddress(text), text).to.equal(undefined)
  })
})
