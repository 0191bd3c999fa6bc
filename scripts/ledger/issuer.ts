import { Command } from 'commander'
import { rotateSigningKey } from '../../src/embedded/issuer/signingKey.ts'
import { issuerDirectory } from './embeddedIssuer.ts'
import { jsonOption, print, printJson } from './print.ts'

const rotateKey = async ({ now, json }: { readonly now: boolean; readonly json: boolean }): Promise<void> => {
  const { signing, retiring } = await rotateSigningKey(await issuerDirectory(), { now })
  const old = retiring.map(({ key, until }) => ({ kid: key.kid, until: new Date(until * 1_000).toISOString() }))
  if (json) return printJson({ kid: signing.kid, retiring: old })
  print(`signs     ${signing.kid}`)
  for (const { kid, until } of old) print(`retiring  ${kid}, published until ${until}`)
}

export const issuerCommand = new Command('issuer')
  .description('Rotates the signing key of the embedded issuer.')
  .addCommand(
    new Command('rotate-key')
      .description(
        'Creates a new signing key. The old one stays published until the last token that it signed has expired.',
      )
      .option('--now', 'remove the old key at once: all its tokens are refused within 60 s', false)
      .addOption(jsonOption('print JSON: {kid, retiring: [{kid, until}]}'))
      .addHelpText(
        'after',
        '\nThe service does not have to run; a running service signs with the new key within seconds, and keeps accepting the old tokens.\n' +
          'Use --now if others may have the old key.',
      )
      .action(rotateKey),
  )
