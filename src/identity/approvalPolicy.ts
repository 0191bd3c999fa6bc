import { authorize, type Authorization } from './authorize.ts'
import type { Principal } from './principal.ts'

/**
 * The approval policy of invoices (four eyes): from an amount that the setting APPROVAL_FOUR_EYES gives for a tenant
 * and a currency, an invoice must be approved by another subject than the one that created it.
 */

/** The amounts, in minor units, by tenant and currency. */
export type ApprovalAmounts = ReadonlyMap<string, bigint>

export const approvalKey = (tenant: string, currency: string): string => `${tenant} ${currency}`

/**
 * Whether an invoice of this amount, in minor units, must be approved by another subject than the one that created it.
 */
export type NeedsFourEyes = (tenant: string, currency: string, amount: bigint) => boolean

export const needsFourEyesFrom =
  (amounts: ApprovalAmounts): NeedsFourEyes =>
  (tenant, currency, amount) => {
    const from = amounts.get(approvalKey(tenant, currency))
    return from !== undefined && amount >= from
  }

type Approved = {
  readonly tenant_id: string
  readonly currency: string
  readonly amount_due: bigint
  readonly created_by: string
}

/**
 * Decides whether the caller may approve the invoice. Its scope and the visibility of the invoice are checked before.
 */
export const authorizeApproval = (
  principal: Principal,
  { tenant_id, currency, amount_due, created_by }: Approved,
  needsFourEyes: NeedsFourEyes,
): Authorization => {
  const scope = 'invoice:approve'
  if (!needsFourEyes(tenant_id, currency, amount_due)) return { granted: true, authority: scope }
  return authorize(principal, { scope, otherThan: created_by })
}
