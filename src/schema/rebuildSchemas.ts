/** The schemas of read models' tables that are not live (src/feeds/rebuild). */

export const BUILDING_SCHEMA = 'ledger_rebuild'
/** Replaced tables, which are kept for a roll-back. */
export const PREVIOUS_SCHEMA = 'ledger_previous'
