/**
 * How often a case repeats the same rule with other random values: a few times in `npm test`, and `full` times in
 * `npm run test:soak` and beside mutants, which set the variable.
 */
export const breadth = (few: number, full: number): number => (process.env['TEST_BREADTH'] === 'full' ? full : few)
