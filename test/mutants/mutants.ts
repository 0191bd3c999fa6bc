import { FAIRNESS_MUTANTS } from './fairnessMutants.ts'
import type { Mutant } from './mutant.ts'

/** The mutants: bugs to plant. */
export const mutants: readonly Mutant[] = [
  {
    name: 'a payment that is initiated and not yet accepted can be failed',
    issue: 'A1',
    file: 'streams/payment/decider.ts',
    find: `  if (payment.status !== 'accepted') return conflict(payment)
  return [{ type: 'PaymentFailed'`,
    replace: `  if (payment.status !== 'accepted' && payment.status !== 'initiated') return conflict(payment)
  return [{ type: 'PaymentFailed'`,
  },
  {
    name: 'a checkpoint is a computed position instead of that of an event',
    issue: 'A2',
    file: 'src/processes/openTasks.ts',
    find: `if ('after' in origin) return origin.after`,
    replace: `if ('after' in origin) return origin.after === 'start' ? origin.after : origin.after - 1n`,
  },
  {
    name: 'raising an invoice does not bind its idempotency key',
    issue: 'A3',
    file: 'src/commands/invoices.ts',
    find: `(refusal ? recordedKeyConflict(ledger, key) : recordKey(ledger, key, context))`,
    replace: `recordedKeyConflict(ledger, key)`,
  },
  {
    name: 'a feed run continues after its background work has ended',
    issue: 'A4',
    file: 'src/feeds/feedLoop.ts',
    find: `        progress.hasWork()
        halfEnded.abort()`,
    replace: `        progress.hasWork()`,
  },
  {
    name: 'an unreadable event stops its process manager',
    issue: 'A5',
    file: 'src/processes/eventConsumer.ts',
    find: `    parking.markParked(rows)
    return rows`,
    replace: `    throw error`,
  },
  {
    name: 'GET /events also lists a late fact at its original position',
    issue: 'A6',
    file: 'projections/facts/queries.ts',
    find: `      exists (select from late_facts l where l.position = f.position) as is_elsewhere`,
    replace: `      false as is_elsewhere`,
  },
  {
    name: 'an outage after a durable event is reported as no effect',
    issue: 'A7',
    file: 'src/commands/commandHandler.ts',
    find: `  if (!appended.ok) return undefined
  noteEffect()`,
    replace: `  if (!appended.ok) return undefined`,
  },
  {
    name: 'a late fact is not recorded as late',
    issue: 'A6',
    file: 'src/feeds/arrivalOrder.ts',
    find: `    await sql(ARRIVE_LATE, [event.position])`,
    replace: ``,
  },
  {
    name: 'a manifest does not name dead letters as missing',
    issue: 'A11',
    file: 'src/commands/factCounts.ts',
    find: `missing: (after[index] ?? []).slice(0, MISSING_MAX)`,
    replace: `missing: []`,
  },
  {
    name: 'a feed run begins without the parked keys',
    issue: 'A12',
    file: 'src/feeds/parking.ts',
    find: `  const parkedKeys = await firstPositionsOfKeys(database.sql, name)`,
    replace: `  const parkedKeys = new Map<string, bigint>()`,
  },
  {
    name: 'a batch with an unreadable event is written without a check of its epoch',
    issue: 'A13',
    file: 'src/feeds/readModelWriter.ts',
    find: `  await parking.parkInTransaction(async sql => {
    await moveCheckpoint(sql, [model.name], batch.position, batch.epoch)`,
    replace: `  await parking.parkInTransaction(async sql => {`,
  },
  {
    name: 'the service starts on the tables of another log',
    issue: 'A17',
    file: 'src/logIdentity/logIdentity.ts',
    find: `  if (of !== undefined && of !== log)`,
    replace: `  if (of === undefined && of !== log)`,
  },
  {
    name: 'the service starts on tables of a later state of its log',
    issue: 'A17',
    file: 'src/logIdentity/logIdentity.ts',
    find: `    if (one && !(await isIn(store, one)))`,
    replace: `    if (one && one.id === '' && !(await isIn(store, one)))`,
  },
  {
    name: 'a command that lost every race for its stream counts as successful',
    issue: 'A21',
    file: 'src/commands/commandHandler.ts',
    find: `      if (attempt === ATTEMPTS_MAX) throw new Contended(stream)`,
    replace: `      if (attempt === ATTEMPTS_MAX) return { ok: true, ...before }`,
  },
  {
    name: 'the request fingerprint of an idempotency key is ignored',
    file: 'src/commands/idempotency/conflicts.ts',
    find: `first.fingerprint !== record.fingerprint`,
    replace: `first.fingerprint === ''`,
  },
  {
    name: 'If-Match accepts any ETag',
    file: 'src/http/request/entityTags.ts',
    find: `tags.some(tag => !tag.weak && tag.opaque === etag))`,
    replace: `tags.length > 0)`,
  },
  {
    name: 'If-Match accepts weak ETags',
    file: 'src/http/request/entityTags.ts',
    find: `tag => !tag.weak && tag.opaque === etag`,
    replace: `tag => tag.opaque === etag`,
  },
  {
    name: 'the checkpoint moves before the broker has acknowledged',
    file: 'src/feeds/deliveryWithParking.ts',
    find: `        const rows = await sendAll(dependencies, attempt, parking, facts)`,
    replace: `        await commit(database.sql)
        const rows = await sendAll(dependencies, attempt, parking, facts)`,
  },
  {
    name: 'an append that lost its race counts as successful',
    file: 'src/commands/commandHandler.ts',
    find: `  if (!appended.ok) return undefined
  noteEffect()`,
    replace: `  if (!appended.ok)
    return appended.actual === 'no_stream' ? undefined : aggregates.advance(entity, before, events)
  noteEffect()`,
  },
  {
    name: 'lists show the rows of every tenant',
    file: 'projections/listQueries.ts',
    find: `const where = ['tenant_id = $1',`,
    replace: `const where = ['tenant_id is not null and $1::text is not null',`,
  },
  {
    name: 'a GET by id shows the resource of another tenant',
    file: 'src/http/resources/commonReplies.ts',
    find: `row.tenant_id !== call.principal.tenant || `,
    replace: ``,
  },
  {
    name: 'a feed of an old epoch can move the checkpoint',
    file: 'src/feeds/checkpoints.ts',
    find: `where name = any($1::text[]) and epoch = $3 returning name`,
    replace: `where name = any($1::text[]) and $3::bigint is not null returning name`,
  },
  {
    name: 'a checkpoint can move backwards',
    file: 'src/feeds/checkpoints.ts',
    find: `set position = greatest(position, $2), updated_at = now()
      where name = any(`,
    replace: `set position = $2, updated_at = now()
      where name = any(`,
  },
  {
    name: 'a process that was replaced seals on',
    file: 'src/feeds/checkpoints.ts',
    find: `where name = $1 and epoch = $3 returning name`,
    replace: `where name = $1 and $3::bigint is not null returning name`,
  },
  {
    name: 'a process that was replaced moves a checkpoint that no rows belong to',
    file: 'src/feeds/checkpoints.ts',
    find: `where name = $1 and epoch = $3 and`,
    replace: `where name = $1 and $3::bigint is not null and`,
  },
  {
    name: 'the events of a retry have new ids',
    file: 'src/processes/processManager.ts',
    find: 'commandId: `${manager}/${recorded.eventId}`',
    replace: 'commandId: `${manager}/${recorded.eventId}/${world.now()}`',
  },
  {
    name: 'payment recovery does not wait for the deadline of the request',
    file: 'src/processes/recoveryTimes.ts',
    find: `export const PAYMENT_GRACE_MS = PAYMENT_DEADLINE_MS`,
    replace: `export const PAYMENT_GRACE_MS = -PAYMENT_DEADLINE_MS`,
  },
  {
    name: 'recovery starts an hour late',
    file: 'src/processes/openTasks.ts',
    find: `dueAtMs <= world.monotonicMs()`,
    replace: `dueAtMs <= world.monotonicMs() - 3_600_000`,
  },
  {
    name: 'grace periods are measured by the wall clock',
    file: 'src/processes/openTasks.ts',
    find: `dueAtMs <= world.monotonicMs()`,
    replace: `dueAtMs <= world.now()`,
  },
  {
    name: 'a refund may exceed what was paid',
    file: 'streams/payment/decider.ts',
    find: `granted === 0n || granted > left ? undefined : granted`,
    replace: `granted === 0n ? undefined : granted`,
  },
  {
    name: 'a refund is granted twice',
    file: 'streams/payment/decider.ts',
    find: `  if (payment.refunds.has(refund_id)) return []`,
    replace: ``,
  },
  {
    name: 'a payment may exceed what is due',
    file: 'streams/invoice/decider.ts',
    find: `  return pay.amount > stillDue(invoice) ? 'payment_exceeds_due' : undefined`,
    replace: `  return pay.amount > invoice.due ? 'payment_exceeds_due' : undefined`,
  },
  {
    name: 'pending payments are not deducted from the amount that is still due',
    file: 'streams/invoice/decider.ts',
    find: `  invoice.due - invoice.paid - invoice.pending`,
    replace: `  invoice.due - invoice.paid`,
  },
  {
    name: 'an invoice reserves the same payment twice',
    file: 'streams/invoice/decider.ts',
    find: `  if (invoice.payments.has(payment_id)) return []`,
    replace: ``,
  },
  {
    name: 'an invoice does not record a refused payment',
    file: 'streams/invoice/decider.ts',
    find: `  if (code) return [{ type: 'PaymentRefused', data: { payment_id, amount, code } }]`,
    replace: `  if (code) return []`,
  },
  {
    name: 'an invoice counts pending amounts as paid',
    file: 'streams/invoice/decider.ts',
    find: `  const paidInFull = amount_paid === invoice.due`,
    replace: `  const paidInFull = amount_paid + invoice.pending === invoice.due`,
  },
  {
    name: 'an invoice with a pending payment can be voided',
    file: 'streams/invoice/decider.ts',
    find: `  if (invoice.paid > 0n || invoice.pending > 0n)`,
    replace: `  if (invoice.paid > 0n)`,
  },
  {
    name: 'a command without effect is answered from an outdated cached state',
    file: 'src/commands/commandHandler.ts',
    find: `        if (!isCurrent) continue
`,
    replace: ``,
  },
  {
    name: 'a GET by id answers from an outdated cached state',
    file: 'src/commands/aggregateRepository.ts',
    find: `return isOwn ? aggregates.load(entity, id) : undefined`,
    replace: `return isOwn ? (aggregates.cached(entity, id) ?? aggregates.load(entity, id)) : undefined`,
  },
  {
    name: 'a 412 may name the version that the client sent',
    issue: 'A19',
    file: 'src/commands/commandHandler.ts',
    find: `    if (loaded.revision !== before.revision) return loaded`,
    replace: `    return loaded`,
  },
  {
    name: 'the reference of a refused payment is not released',
    file: 'src/commands/payments.ts',
    find: `  if (reference !== null) {
    const command = { type: 'ReleaseReference'`,
    replace: `  if (reference === undefined) {
    const command = { type: 'ReleaseReference'`,
  },
  {
    name: 'a payment is accepted with a reference that another payment holds',
    file: 'src/commands/payments.ts',
    find: `  return held_by && { code: 'payment_reference_conflict', held_by }`,
    replace: `  return undefined`,
  },
  {
    name: 'a later state of a payment is returned as its outcome',
    file: 'src/commands/payments.ts',
    find: `  if (!confirmed.ok || confirmed.row?.revision !== 1n) return undefined`,
    replace: `  if (!confirmed.ok || confirmed.row === undefined) return undefined`,
  },
  {
    name: 'a fact overtakes a dead letter of its key',
    file: 'src/feeds/parking.ts',
    find: `    markParked(rows)
  }`,
    replace: `  }`,
  },
  {
    name: 'facts that wait behind a dead letter are dropped',
    file: 'src/feeds/deliveryWithParking.ts',
    find: `  const rows = parking.rowsOf(referencesOf(waiting))`,
    replace: `  const rows = parking.rowsOf([])`,
  },
  {
    name: 'a failed replay of a dead letter counts as done',
    file: 'src/feeds/parking.ts',
    find: `  if (failure) await fenced(sql => recordFailedReplay(sql, event, failure))
  return failure === undefined`,
    replace: `  if (failure) await fenced(sql => recordFailedReplay(sql, event, failure))
  return true`,
  },
  {
    name: 'a read model applies an earlier event again',
    file: 'src/feeds/readModelWriter.ts',
    find: `event.position <= position) continue`,
    replace: `event.position === position) continue`,
  },
  {
    name: 'a read model and its checkpoint are written in different transactions',
    file: 'src/feeds/readModelWriter.ts',
    find: `    await moveCheckpoint(sql, names, batch.position, batch.epoch)
    await writeEach(`,
    replace: `    await moveCheckpoint(database.sql, names, batch.position, batch.epoch)
    await writeEach(`,
  },
  {
    name: 'an export does not wait for its read model',
    file: 'src/processes/exports/writeFile.ts',
    find: `  while ((await positionOf(database.sql, name)) < position) {`,
    replace: `  while (position < 0n) {`,
  },
  {
    name: 'a payment is confirmed though its invoice refused it',
    file: 'src/commands/payments.ts',
    find: `  if (refusal) return refuse(`,
    replace: `  if (refusal?.held_by) return refuse(`,
  },
  {
    name: 'a list with If-Min-Position does not wait',
    file: 'src/http/resources/collection.ts',
    find: `  if (position >= target) return position
  throw new Problem('projection_behind'`,
    replace: `  if (position >= 0n) return position
  throw new Problem('projection_behind'`,
  },
  {
    name: 'each API key of a tenant has a quota of its own',
    issue: 'B13',
    file: 'src/http/admission/rateLimits.ts',
    find: `count(local, tenant, 'api_keys')`,
    replace: `count(local, caller, 'api_keys')`,
  },
  {
    name: 'exports start in the order of their requests instead of fairly by tenant',
    issue: 'B14',
    file: 'src/processes/exports/exports.ts',
    find: `const next = scheduler.next(due, [...running.keys()])`,
    replace: `const [next] = due`,
  },
  {
    name: 'the export scheduler does not count running exports',
    issue: 'B14',
    file: 'src/processes/fairScheduling.ts',
    find: `busy.get(tenantOf(job))?.length ?? 0`,
    replace: `0`,
  },
  {
    name: 'an append is sent without an expected revision',
    file: 'src/adapters/eventstoredb/appendMessages.ts',
    find: `  else writer.presentInteger(OPTIONS.position, expected)`,
    replace: `  else writer.nested(4, options)`,
  },
  {
    name: 'an idempotent resend of an append is answered with a conflict',
    file: 'src/embedded/eventstore/appendDecision.ts',
    find: `  return decideStale(revision, ids, stream)`,
    replace: `  return { kind: 'wrong_version', actual: stream.head }`,
  },
  {
    name: 'a transaction that fails is committed',
    file: 'src/adapters/postgres/database.ts',
    find: `    await rollback(connection, error)
    throw error
  }
}

const snapshotOf`,
    replace: `    await commit(client).finally(() => release())
    throw error
  }
}

const snapshotOf`,
  },
  {
    name: 'a new holder of a lease gets the epoch of the previous one',
    file: 'src/adapters/postgres/lease.ts',
    find: `set epoch = lease.epoch + 1,`,
    replace: `set epoch = lease.epoch,`,
  },
  {
    name: 'formulas are not escaped in CSV exports',
    file: 'src/adapters/files/csv.ts',
    find: `ESCAPED.test(text) ?`,
    replace: `text.startsWith("'") ?`,
  },
  {
    name: 'recovery waits for the whole deadline of a request',
    file: 'src/processes/recoveryTimes.ts',
    find: `export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS / 2`,
    replace: `export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS`,
  },
  {
    name: 'a task that lost its races is retried as late as a failed one',
    file: 'src/processes/processManager.ts',
    find: `error instanceof Contended ? RECOVERY_CONTENDED_RETRY_MS : RECOVERY_FAILED_RETRY_MS`,
    replace: `error instanceof Contended ? RECOVERY_FAILED_RETRY_MS : RECOVERY_FAILED_RETRY_MS`,
  },
  {
    name: 'a fact that was parked before a restore or a reset is written at its own position',
    file: 'src/feeds/readModelWriter.ts',
    find: `    if (events.some(({ position }) => hasParked(position))) throw new ParkedBefore()
`,
    replace: ``,
  },
  {
    name: 'dead letters are replayed before the projector has read all that readers can have reached',
    file: 'src/feeds/readModelWriter.ts',
    find: `end === undefined || reached < end)`,
    replace: `end === undefined)`,
  },
  {
    name: 'a fact is parked that the log has not recorded',
    file: 'src/feeds/parking.ts',
    find: `      await beforeParking?.(rows)
`,
    replace: ``,
  },
  {
    name: 'an order accepts its voided invoice again',
    file: 'streams/order/decider.ts',
    find: ` || state.voided.has(invoice_id)) return []`,
    replace: `) return []`,
  },
  {
    name: 'a superseded attempt at an export counts as the end of the export',
    file: 'src/processes/exports/exports.ts',
    find: `      if (await attemptOnce(dependencies, job.work, AbortSignal.any([stop, job.ended]))) tasks.end(job.key)
      else tasks.postpone(job.key, RETRY_MS)`,
    replace: `      await attemptOnce(dependencies, job.work, AbortSignal.any([stop, job.ended]))
      tasks.end(job.key)`,
  },
  {
    name: 'an order does not record that it refused an invoice under an idempotency key',
    file: 'streams/order/decider.ts',
    find: `  if (claim === null) return refusal`,
    replace: `  if (claim === null || claim !== undefined) return refusal`,
  },
  {
    name: 'a restored log that has grown since is accepted',
    issue: 'A17',
    file: 'src/logIdentity/logIdentity.ts',
    find: `  for (const one of [seen, fact?.event])`,
    replace: `  for (const one of [seen && fact?.event, fact?.event])`,
  },
  {
    name: 'the events of a repeated command are folded as sent and not as stored',
    file: 'src/commands/commandHandler.ts',
    find: `context.mayBeRepeated ? await asStored(ledger, entity, sent) : sent`,
    replace: `sent`,
  },
  {
    name: 'an event is parked again by the feed run that discarded it',
    file: 'src/processes/eventConsumer.ts',
    find: `      discarded.add(event.position)`,
    replace: ``,
  },
  {
    name: 'a failed replay cancels a request to discard',
    file: 'src/feeds/deadLetters.ts',
    find: ` and requested = 'replay'`,
    replace: ``,
  },
  {
    name: 'a stream is taken for unchanged although the log has grown since it was read',
    file: 'src/adapters/eventstoredb/streamEnds.ts',
    find: `end.next <= from && end.asOf >= position`,
    replace: `end.next <= from`,
  },
  ...FAIRNESS_MUTANTS,
]
