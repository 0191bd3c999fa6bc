/** What the page knows of the installation: written into it by the service (http/server/consoleMount.ts). */

type Settings = {
  readonly issuer: string
  readonly clientId: string
  readonly scope: string
  readonly environment: string
}

const content = document.querySelector<HTMLMetaElement>('meta[name=ledger-console]')?.content ?? '{}'

export const settings = JSON.parse(content) as Settings

/** The path that the pages of the console are below, which is its redirect URI too. */
export const HOME = '/console'
