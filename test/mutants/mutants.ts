/**
 * Bugs to plant, one at a time: a text of a file and what stands in its place. Each is one that somebody could write, or
 * that the code once had (`issue` names its point of the review that found it).
 */
export type Mutant = {
  readonly name: string
  readonly issue?: string
  readonly file: string
  readonly find: string
  readonly replace: string
}

export const mutants: readonly Mutant[] = [
  {
    name: 'a settler fails a payment that is claimed and not yet accepted',
    issue: 'A1',
    file: 'streams/payment/decider.ts',
    find: `  if (payment.status !== 'accepted') return conflict(payment)
  return [{ type: 'PaymentFailed'`,
    replace: `  if (payment.status !== 'accepted' && payment.status !== 'initiated') return conflict(payment)
  return [{ type: 'PaymentFailed'`,
  },
  {
    name: 'a checkpoint is a computed position',
    issue: 'A2',
    file: 'src/processes/openTasks.ts',
    find: `if ('after' in origin) return origin.after`,
    replace: `if ('after' in origin) return origin.after === 'start' ? origin.after : origin.after - 1n`,
  },
  {
    name: 'the key of an invoice is bound by its order alone',
    issue: 'A3',
    file: 'src/commands/invoices.ts',
    find: `(refusal ? boundKeyConflict(ledger, key) : bindKey(ledger, key, context))`,
    replace: `boundKeyConflict(ledger, key)`,
  },
  {
    name: 'a run goes on when its other half has ended',
    issue: 'A4',
    file: 'src/feeds/subscriptionLoop.ts',
    find: `        progress.hasWork()
        halfEnded.abort()`,
    replace: `        progress.hasWork()`,
  },
  {
    name: 'an event that cannot be read stops its process',
    issue: 'A5',
    file: 'src/processes/eventIntake.ts',
    find: `    parking.countAsParked(rows)
    return rows`,
    replace: `    throw error`,
  },
  {
    name: 'a fact that came late stands at its position',
    issue: 'A6',
    file: 'projections/facts/queries.ts',
    find: `      exists (select from late_facts l where l.position = f.position) as is_elsewhere`,
    replace: `      false as is_elsewhere`,
  },
  {
    name: 'a store that is gone after a durable event is told as no effect',
    issue: 'A7',
    file: 'src/commands/commandHandler.ts',
    find: `  if (!appended.ok) return undefined
  noteEffect()`,
    replace: `  if (!appended.ok) return undefined`,
  },
  {
    name: 'a fact that comes late is not noted as late',
    issue: 'A6',
    file: 'src/feeds/arrivalOrder.ts',
    find: `      await sql(ARRIVE_LATE, [event.position])`,
    replace: ``,
  },
  {
    name: 'a manifest is sealed over what is parked as if it were all',
    issue: 'A11',
    file: 'src/commands/factCounts.ts',
    find: `missing: (after[index] ?? []).slice(0, MISSING_MAX)`,
    replace: `missing: []`,
  },
  {
    name: 'the parked keys are read before the checkpoint is taken over',
    issue: 'A12',
    file: 'src/feeds/parking.ts',
    find: `  const parkedKeys = await firstParkedPositions(database.sql, name)`,
    replace: `  const parkedKeys = new Map<string, bigint>()`,
  },
  {
    name: 'a batch with poison is written without its epoch',
    issue: 'A13',
    file: 'src/feeds/readModelWriter.ts',
    find: `  await parking.parkInTransaction(async sql => {
    await moveCheckpoint(sql, [model.name], batch.position, batch.epoch)`,
    replace: `  await parking.parkInTransaction(async sql => {`,
  },
  {
    name: 'tables of another log are served',
    issue: 'A17',
    file: 'src/commands/logIdentity.ts',
    find: `  if (of !== undefined && of !== log)`,
    replace: `  if (of === undefined && of !== log)`,
  },
  {
    name: 'tables of a later state of the log are served',
    issue: 'A17',
    file: 'src/commands/logIdentity.ts',
    find: `    if (one && !(await isIn(store, one)))`,
    replace: `    if (one && one.id === '' && !(await isIn(store, one)))`,
  },
  {
    name: 'a lost race counts as success',
    issue: 'A21',
    file: 'src/commands/commandHandler.ts',
    find: `      if (attempt === ATTEMPTS_MAX) throw new Contended(stream)`,
    replace: `      if (attempt === ATTEMPTS_MAX) return { ok: true, ...before }`,
  },
  {
    name: 'the fingerprint of a key is ignored',
    file: 'src/commands/idempotency.ts',
    find: `first.fingerprint !== record.fingerprint`,
    replace: `first.fingerprint === ''`,
  },
  {
    name: 'If-Match takes any tag',
    file: 'src/http/request/conditional.ts',
    find: `tags.some(tag => !tag.weak && tag.opaque === etag))`,
    replace: `tags.length > 0)`,
  },
  {
    name: 'If-Match compares weakly',
    file: 'src/http/request/conditional.ts',
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
    name: 'an append that lost its race is taken for one that won',
    file: 'src/commands/commandHandler.ts',
    find: `  if (!appended.ok) return undefined
  noteEffect()`,
    replace: `  if (!appended.ok)
    return appended.actual === 'no_stream' ? undefined : aggregates.advance(entity, before, events)
  noteEffect()`,
  },
  {
    name: 'lists show the rows of every tenant',
    file: 'projections/page.ts',
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
    name: 'a checkpoint is moved in an old epoch',
    file: 'src/feeds/checkpoints.ts',
    find: `where name = any($1::text[]) and epoch = $3 returning name`,
    replace: `where name = any($1::text[]) and $3::bigint is not null returning name`,
  },
  {
    name: 'a checkpoint goes back',
    file: 'src/feeds/checkpoints.ts',
    find: `set position = greatest(position, $2)`,
    replace: `set position = $2`,
  },
  {
    name: 'the events of a retry have new ids',
    file: 'src/processes/processManager.ts',
    find: 'commandId: `${manager}/${recorded.eventId}`',
    replace: 'commandId: `${manager}/${recorded.eventId}/${world.now()}`',
  },
  {
    name: 'recovery does not wait for the request',
    file: 'src/commands/timeBudgets.ts',
    find: `export const PAYMENT_GRACE_MS = PAYMENT_DEADLINE_MS`,
    replace: `export const PAYMENT_GRACE_MS = -PAYMENT_DEADLINE_MS`,
  },
  {
    name: 'recovery never comes',
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
    name: 'what is pending is not reserved',
    file: 'streams/invoice/decider.ts',
    find: `  invoice.due - invoice.paid - invoice.pending`,
    replace: `  invoice.due - invoice.paid`,
  },
  {
    name: 'an invoice takes a payment twice',
    file: 'streams/invoice/decider.ts',
    find: `  if (invoice.payments.has(payment_id)) return []`,
    replace: ``,
  },
  {
    name: 'a refused payment is no event',
    file: 'streams/invoice/decider.ts',
    find: `  if (code) return [{ type: 'PaymentRefused', data: { payment_id, amount, code } }]`,
    replace: `  if (code) return []`,
  },
  {
    name: 'an invoice is paid when nothing is pending',
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
    name: 'an answer without effect is given from the cache',
    file: 'src/commands/commandHandler.ts',
    find: `        if (isCached) continue
`,
    replace: ``,
  },
  {
    name: 'a GET by id answers from the cache',
    file: 'src/http/resources/commonReplies.ts',
    find: `(await aggregates.load(entity, id)).row`,
    replace: `(aggregates.cached(entity, id) ?? (await aggregates.load(entity, id))).row`,
  },
  {
    name: 'a 412 names a version that may be the one that was sent',
    issue: 'A19',
    file: 'src/commands/commandHandler.ts',
    find: `    if (loaded.revision !== before.revision) return loaded`,
    replace: `    return loaded`,
  },
  {
    name: 'the reference of a refused payment is kept',
    file: 'src/commands/payments.ts',
    find: `  if (terms.reference !== null) {
    const command = { type: 'ReleaseReference'`,
    replace: `  if (terms.reference === '') {
    const command = { type: 'ReleaseReference'`,
  },
  {
    name: 'a reference that another payment holds is taken',
    file: 'src/commands/payments.ts',
    find: `  return held_by && { code: 'payment_reference_conflict', held_by }`,
    replace: `  return undefined`,
  },
  {
    name: 'the outcome of another driver is told as the first answer',
    file: 'src/commands/payments.ts',
    find: `  if (!confirmed.ok || confirmed.row?.revision !== 1n) return undefined`,
    replace: `  if (!confirmed.ok || confirmed.row === undefined) return undefined`,
  },
  {
    name: 'a fact overtakes one of its key that is parked',
    file: 'src/feeds/parking.ts',
    find: `    countAsParked(rows)
  }`,
    replace: `  }`,
  },
  {
    name: 'what waits behind a parked fact is dropped',
    file: 'src/feeds/deliveryWithParking.ts',
    find: `  const rows = parking.rowsOf(referencesOf(waiting))`,
    replace: `  const rows = parking.rowsOf([])`,
  },
  {
    name: 'a replay of what is parked ends at a failure as if it were done',
    file: 'src/feeds/parking.ts',
    find: `  if (failure) await fenced(sql => recordFailedReplay(sql, event, failure))
  return failure === undefined`,
    replace: `  if (failure) await fenced(sql => recordFailedReplay(sql, event, failure))
  return true`,
  },
  {
    name: 'a read model counts an event twice as new',
    file: 'src/feeds/readModelWriter.ts',
    find: `event => event.position > position && model`,
    replace: `event => event.position !== position && model`,
  },
  {
    name: 'a read model and its checkpoint part',
    file: 'src/feeds/readModelWriter.ts',
    find: `    await moveCheckpoint(sql, names, batch.position, batch.epoch)
    for (const readModel of lagging) {`,
    replace: `    await moveCheckpoint(database.sql, names, batch.position, batch.epoch)
    for (const readModel of lagging) {`,
  },
  {
    name: 'an export does not wait for what was written before it',
    file: 'src/processes/exports/writeFile.ts',
    find: `  while ((await positionOf(database.sql, name)) < position) {`,
    replace: `  while (position < 0n) {`,
  },
  {
    name: 'a payment is confirmed though its invoice refused it',
    file: 'src/commands/payments.ts',
    find: `  if (refused) return refuse(`,
    replace: `  if (refused?.held_by) return refuse(`,
  },
  {
    name: 'a list with If-Min-Position does not wait',
    file: 'src/http/resources/collection.ts',
    find: `  if (position >= wanted) return position
  throw new Problem('projection_behind'`,
    replace: `  if (position >= 0n) return position
  throw new Problem('projection_behind'`,
  },
  {
    name: 'the API keys of a tenant have a quota each',
    issue: 'B13',
    file: 'src/http/access/rateLimits.ts',
    find: `usage(local, tenant, 'api_keys', settings.api_keys)`,
    replace: `usage(local, key, 'api_keys', settings.api_keys)`,
  },
  {
    name: 'exports are begun in the order in which they were asked for, whoever asked',
    issue: 'B14',
    file: 'src/processes/exports/exports.ts',
    find: `const next = scheduler.next(due, [...running.keys()])`,
    replace: `const [next] = due`,
  },
  {
    name: 'the scheduler of exports does not count those under way',
    issue: 'B14',
    file: 'src/processes/fairScheduling.ts',
    find: `busy.get(tenantOf(job))?.length ?? 0`,
    replace: `0`,
  },
  {
    name: 'an append is sent for any revision',
    file: 'src/adapters/eventstoredb/batchAppend.ts',
    find: `  else options.setStreamPosition(expected.toString())`,
    replace: `  else options.setAny(new empty.Empty())`,
  },
  {
    name: 'an append that the store has twice is told as a conflict',
    file: 'src/embedded/eventstore/appendDecision.ts',
    find: `  return decideStale(revision, ids, stream)`,
    replace: `  return { kind: 'wrong_version', actual: stream.head }`,
  },
  {
    name: 'work that fails in a transaction is committed',
    file: 'src/adapters/postgres/database.ts',
    find: `    await rollback(client, error)
    throw error
  }
}

const snapshotOf`,
    replace: `    await commit(client).finally(() => client.release())
    throw error
  }
}

const snapshotOf`,
  },
  {
    name: 'a new holder of a lease has the epoch of the one before',
    file: 'src/adapters/postgres/lease.ts',
    find: `set epoch = lease.epoch + 1,`,
    replace: `set epoch = lease.epoch,`,
  },
  {
    name: 'a spreadsheet calculates the texts of an export',
    file: 'src/adapters/files/csv.ts',
    find: `(ESCAPED.test(text) ?`,
    replace: `(text.startsWith("'") ?`,
  },
  {
    name: 'a request has its whole deadline before others take up its work',
    file: 'src/commands/timeBudgets.ts',
    find: `export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS / 2`,
    replace: `export const REQUEST_GRACE_MS = REQUEST_DEADLINE_MS`,
  },
  {
    name: 'a task that lost its races is tried again as late as one that failed',
    file: 'src/processes/processManager.ts',
    find: `error instanceof Contended ? CONTENDED_RETRY_MS : FAILED_RETRY_MS`,
    replace: `error instanceof Contended ? FAILED_RETRY_MS : FAILED_RETRY_MS`,
  },
  {
    name: 'readers lose their places when the tables are made anew',
    file: 'src/commands/logIdentity.ts',
    find: `  await keepReaderPositions(sql)`,
    replace: `  await sql('truncate late_facts, facts_head')`,
  },
  {
    name: 'a fact that is parked at a reset comes late before its own position',
    file: 'src/commands/readerPositions.ts',
    find: `greatest(max(p.position) over (), h.position,`,
    replace: `greatest(h.position,`,
  },
  {
    name: 'a fact that is parked at a second reset keeps its former arrival',
    file: 'src/commands/readerPositions.ts',
    find: `  on conflict (position) do update set arrival = excluded.arrival, seq = excluded.seq\``,
    replace: `  on conflict (position) do nothing\``,
  },
  {
    name: 'an order takes a voided invoice back',
    file: 'streams/order/decider.ts',
    find: ` || state.voided.has(invoice_id)) return []`,
    replace: `) return []`,
  },
  {
    name: 'an attempt at an export that was superseded counts as its end',
    file: 'src/processes/exports/exports.ts',
    find: `      if (await attemptOnce(dependencies, job.work, AbortSignal.any([stop, job.ended]))) tasks.end(job.key)
      else tasks.postpone(job.key, RETRY_MS)`,
    replace: `      await attemptOnce(dependencies, job.work, AbortSignal.any([stop, job.ended]))
      tasks.end(job.key)`,
  },
  {
    name: 'an order does not record that it refused an invoice under a key',
    file: 'streams/order/decider.ts',
    find: `  if (claim === null) return refusal`,
    replace: `  if (claim === null || claim !== undefined) return refusal`,
  },
  {
    name: 'a log that was restored and has grown since is served',
    issue: 'A17',
    file: 'src/commands/logIdentity.ts',
    find: `  for (const one of [seen, fact?.event])`,
    replace: `  for (const one of [seen && fact?.event, fact?.event])`,
  },
  {
    name: 'the events of a command that is repeated are folded as they were sent',
    file: 'src/commands/commandHandler.ts',
    find: `context.mayBeRepeated ? await asStored(ledger, entity, sent) : sent`,
    replace: `sent`,
  },
  {
    name: 'an event is parked again by the run that has discarded it',
    file: 'src/processes/eventIntake.ts',
    find: `      discarded.add(event.position)`,
    replace: ``,
  },
  {
    name: 'a replay that fails takes back the request to discard',
    file: 'src/feeds/parkedEvents.ts',
    find: ` and requested = 'replay'`,
    replace: ``,
  },
]
