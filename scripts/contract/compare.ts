import { compareAsyncApi } from './channels.ts'
import type { Contract } from './documents.ts'
import { compareOperations } from './operations.ts'
import type { Finding } from './rules.ts'
import { compareTerms } from './terms.ts'

/** Every difference between a released contract and its candidate that concerns a client. */
export const compareContracts = (was: Contract, now: Contract): readonly Finding[] => {
  const openapi = { was: was.openapi, now: now.openapi }
  return [
    ...compareTerms(openapi),
    ...compareOperations(openapi),
    ...compareAsyncApi({ was: was.asyncapi, now: now.asyncapi }),
  ]
}
