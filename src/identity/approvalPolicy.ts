import { authorize, type Authorization, type Caller } from './authorize.ts'
import type { Principal } from './principal.ts'

/**
 * The approval policy of invoices (four eyes): from an amount that the setting APPROVAL_FOUR_EYES gives for a tenant
 * and a currency, an invoice is approved by another subject than its creator, and never by a user through the client that
 * created it by itself, or by a client by itself whose user created it.
 */

/** The amounts, in minor units, by tenant and currency. */
export type ApprovalAmounts = ReadonlyMap<string, bigint>

export const approvalKey = (tenant: string, currency: string): string => `${tenant} ${currency}`

/** Whether an invoice of this amount, in minor units, needs four eyes. */
export type NeedsFourEyes = (tenant: string, currency: string, amount: bigint) => boolean

export const needsFourEyesFrom =
  (amounts: ApprovalAmounts): NeedsFourEyes =>
  (tenant, currency, amount) => {
    const from = amounts.get(approvalKey(tenant, currency))
    return from !== undefined && amount >= from
  }

/** `creator` raised the invoice. Scope and visibility are checked before. */
export const authorizeApproval = (principal: Principal, creator: Caller): Authorization =>
  authorize(principal, { scope: 'invoice:approve', otherThan: creator })
