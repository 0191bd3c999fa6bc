/** How long what the issuer gives out is good for, in seconds. The verifier refuses tokens that claim more. */

export const WORKLOAD_LIFETIME_SECONDS = 300
export const USER_LIFETIME_SECONDS = 900
export const CODE_LIFETIME_SECONDS = 60
/** From the page of the login to the return to the application. */
export const INTERACTION_LIFETIME_SECONDS = 600
/** A working day: after it the user logs in again, and refresh tokens end with it however often they rotated. */
export const SESSION_LIFETIME_SECONDS = 28_800
/** A key that signs no more stays published until the last token that it signed has surely expired. */
export const RETIRING_SECONDS = USER_LIFETIME_SECONDS + 90
