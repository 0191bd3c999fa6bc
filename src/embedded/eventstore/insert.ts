import type pg from 'pg'
import { INSERT_NAME, InsertWriter } from './insertMessage.ts'
import type { StoredRecord } from './record.ts'
import { INSERT } from './statements.ts'

/** The prepared insert of a session, executed by a message of our own: the driver would make four of it. */

type Settle = { readonly resolve: (rows: number) => void; readonly reject: (error: unknown) => void }

/** One execution, as the driver expects it of a query class ("Submittable"). It settles when Postgres has committed. */
class InsertExecution {
  private readonly message: () => Buffer
  private readonly settle: Settle
  private rows = 0

  constructor(message: () => Buffer, settle: Settle) {
    this.message = message
    this.settle = settle
  }

  /** Called when Postgres is ready: it has read all earlier messages, so that their memory may be used again. */
  submit({ stream }: pg.Connection): void {
    // Without a connection, the driver rejects what is under way.
    if (stream.writable) stream.write(this.message())
  }

  /** `INSERT 0 <rows>`. */
  handleCommandComplete({ text }: { readonly text: string }): void {
    this.rows = Number(text.slice(text.lastIndexOf(' ') + 1))
  }

  handleReadyForQuery(): void {
    this.settle.resolve(this.rows)
  }

  handleError(error: unknown): void {
    this.settle.reject(error)
  }
}

/** Prepares the insert. Its calls are executed one after the other; they reject with the error of Postgres or of the connection. */
export const preparedInsert = async (client: pg.Client) => {
  await client.query(`prepare ${INSERT_NAME} as ${INSERT}`)
  const writer = new InsertWriter()
  return (records: readonly StoredRecord[], assumed: ReadonlySet<string>): Promise<number> =>
    new Promise((resolve, reject) => {
      client.query(new InsertExecution(() => writer.message(records, assumed), { resolve, reject }))
    })
}
