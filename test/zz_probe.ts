import { execFileSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { Client as Pg } from 'pg'
import { clientOf, eventually } from './support/client.ts'
import { startProcess, temporaryDirectory } from './support/service.ts'
const N = Number(process.argv[2] ?? 300000)
const d1 = await temporaryDirectory(), d2 = await temporaryDirectory()
const main = await startProcess(d1, { LEDGER_ROLES: 'api,projector' })
const { event_store, postgres } = main.addresses
const worker = await startProcess(d2, { LEDGER_ROLES: 'worker', EVENTSTORE_URL: event_store, DATABASE_URL: postgres })
const client = clientOf(main.api, await main.token({ tenant: 't' }))
const pg = new Pg({ connectionString: postgres }); await pg.connect()
await pg.query(`insert into payments_v1 select 'pay_'||lpad(n::text,26,'0'),'t','succeeded',1, now()+n*interval '1 ms', now()+n*interval '1 ms','bulk','inv_'||lpad(n::text,26,'0'),'ord_'||lpad(n::text,26,'0'), n, 'USD','ref '||n,'immediate',null,0,'{"n":"1"}' from generate_series(1,$1::int) n`, [N])
await pg.query('analyze payments_v1')
let t0=performance.now(); await pg.query(`copy (select * from payments_v1 where tenant_id='t' order by created_at desc, id desc) to '/dev/null' (format csv)`); console.log('copy to /dev/null ms', Math.round(performance.now()-t0))
const rss = () => Number(execFileSync('ps', ['-o','rss=','-p',String(worker.pid)]).toString())/1024
for (const format of ['csv','jsonl','parquet','csv','csv','jsonl','parquet']) {
  const before = rss(); let most = before; const t = performance.now()
  const { body } = await client.post('/exports', { resource: 'payments', format })
  const samples: number[] = []
  const done = await eventually(async () => { const r = rss(); samples.push(Math.round(r)); most = Math.max(most, r); const a = await client.get('/operations/'+body.id); return ['succeeded','failed'].includes(a.body.state) && a.body }, 200000)
  console.log(format, done.state, done.progress.done, 'ms', Math.round(performance.now()-t), 'rss', Math.round(before), '→', Math.round(most), samples.filter((_, i) => i % Math.ceil(samples.length/12) === 0).join(' '))
}
const at = performance.now()
await pg.end(); await worker.end('SIGTERM'); await main.end('SIGTERM'); await rm(d1,{recursive:true,force:true}); await rm(d2,{recursive:true,force:true})
