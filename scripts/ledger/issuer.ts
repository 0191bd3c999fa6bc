import { Command } from 'commander'
import { rotateSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { issuerDirectory } from './embeddedIssuer.ts'
import { print, printJson } from './print.ts'

/** `issuer`: rotation of the embedded issuer's signing key. */

const rotateKey = async ({ now, json }: { readonly now: boolean; readonly json: boolean }): Promise<void> => {
  const { signing, retiring } = await rotateSigningKey(await issuerDirectory(), { now })
  const old = retiring.map(({ key, until }) => ({ kid: key.kid, until: new Date(until * 1_000).toISOString() }))
  if (json) return printJson({ kid: signing.kid, retiring: old })
  print(`signs     ${signing.kid}`)
  for (const { kid, until } of old) print(`retiring  ${kid}, published until ${until}`)
}

export const issuerCommand = new Command('issuer').description('The embedded issuer itself.').addCommand(
  new Command('rotate-key')
    .description('Makes a new signing key. The old one goes on checking tokens until the last of its own has expired.')
    .option('--now', 'publish the old key no more: all its tokens are refused within 60 s', false)
    .option('--json', 'one JSON document: {kid, retiring: [{kid, until}]}', false)
    .addHelpText(
      'after',
      '\nThe service need not run; one that does signs with the new key within seconds, and no token is refused meanwhile.\n' +
        'Use --now when others may have the old key.',
    )
    .action(rotateKey),
)
