import './shell.ts'
import { followLinks } from './router.ts'
import { start } from './session.ts'

/** Begins the session, then shows the page. */

const shell = document.createElement('ledger-console')
followLinks()
document.body.append(shell)
const began = await start()
if (began !== 'leaving') Object.assign(shell, { began })
