/** Lifetimes of the issuer's tokens and sessions, in seconds. The verifier refuses tokens with a longer lifetime. */

export const WORKLOAD_LIFETIME_SECONDS = 300
export const USER_LIFETIME_SECONDS = 900
export const CODE_LIFETIME_SECONDS = 60
/** From the login page to the return to the application. */
export const INTERACTION_LIFETIME_SECONDS = 600
/** A working day: then the user logs in again, and refresh tokens expire however often they were rotated. */
export const SESSION_LIFETIME_SECONDS = 28_800
/** A retired key stays published until the last token that it signed has expired. */
export const RETIRING_SECONDS = USER_LIFETIME_SECONDS + 90
