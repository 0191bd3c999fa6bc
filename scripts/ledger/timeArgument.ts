import { timeParameter } from '../../src/http/resources/commonSchemas.ts'

/** Times in the arguments of commands. */

/** The time in UTC, by the rules of the API; undefined for any other text, such as a time without its zone. */
export const timeIn = (text: string): string | undefined => timeParameter.safeParse(text).data
