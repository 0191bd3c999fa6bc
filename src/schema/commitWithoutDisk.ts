/**
 * A condition that is always true. It makes the commit return before it is on the disk: a crash of Postgres then loses the end of
 * all that was committed, and a later commit that waits for the disk waits for this one too. Only for checkpoints that no rows
 * belong to, since the feed reads the log again from the one that is left, and for rows that no one relies on before a later commit
 * that finds them all.
 */
export const WITHOUT_DISK = `(select set_config('synchronous_commit', 'off', true)) = 'off'`
