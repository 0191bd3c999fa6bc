export const BANK_STATEMENT_HELP = `
Each booking of the statement, and each payment that waits for money, gets one status:
  matched            money came in, with the amount and the currency of the deferred payment that the line names; it is settled
  over, under        the line names a deferred payment, and more or less money came. Nothing is settled. A credit is under as well
                     if a reversal in the same statement names its payment and has its amount; each takes one credit back
  currency_mismatch  the line names a deferred payment in another currency. Nothing is settled
  duplicate          amount and currency agree, and the payment is paid already: by another line or without a statement
  missing            the ledger has no deferred payment for this line; or it takes an earlier booking back (a reversal or a
                     return), or is money out that names a payment
  not_settled        the line would be matched, but its invoice has not accepted the payment yet. The same command settles it later
  expected           a deferred payment is pending, and no line names it
  ignored            money out that names no payment; a booking that is only announced, pending or for information
Exit code 1 if a line is over, under, currency_mismatch, duplicate, missing or not_settled.

A line names a payment by its reference or its id: in EndToEndId, the creditor reference, InstrId or TxId of camt.053, in the
column reference of CSV. If these name none, the free texts count: each whole text, then its words of at least 4 characters with
a digit. Of several payments with the line's amount the first that is not settled is settled.

CSV: UTF-8 with a header, separated by commas, semicolons or tabs. Columns, in any order:
  booking_date  YYYY-MM-DD
  amount        a decimal with a point, in the currency's unit: 10.50 or 10.500; negative for money out
  currency      ISO 4217: EUR
  reference     the reference or the id of the payment; may be empty
  id            optional: the bank's id of the booking; without it, equal rows of two files are taken for one booking
  text          optional: free text
  reversal      optional: true if the booking takes an earlier one back
camt.053 is accepted in any version, in UTF-8, with batch bookings (TxDtls). The payments of a batch must add up to its amount, up to
its charges; this is not checked where a payment or a charge is in another currency, or a charge has no amount. A booking without
BookgDt has the date of ValDt, or else of its statement.

The file is checked as a whole first: one that cannot be used changes nothing, and the error names the line. Payments are settled
by POST /payments/{id}:settle, whose correlation id is made from the content of the line: a second import of the same file
finds it in the history of a payment that the line names, settles nothing twice, and gives the same report. So does the same command
after Ctrl-C or a crash. Lists of payments are read once they have all that is in the log when the command begins.
The token needs payments:read and payments:settle, and is a workload's.`
