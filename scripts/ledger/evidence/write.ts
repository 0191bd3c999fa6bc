import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolders } from '../../../src/lib/folders.ts'
import { reaches } from '../../../src/evidence/continuity.ts'
import { newestTrusted, trustedBy } from '../../../src/evidence/headAdoption.ts'
import { openHeadFile } from '../../../src/evidence/headFile.ts'
import { type Head, lineOf } from '../../../src/evidence/heads.ts'
import { allHeads, headsAfter, publicKeys } from '../../../src/evidence/headStore.ts'
import { leavesBelow } from '../../../src/evidence/leaves.ts'
import { leafHash } from '../../../src/evidence/merkle.ts'
import { eventsUpTo, type Pair, pairsOf } from '../../../src/evidence/pairing.ts'
import { canonicalRecord, tenantOf } from '../../../src/evidence/record.ts'
import { holdsCredentials, holdsLogSecret } from '../../../src/evidence/withholding.ts'
import type { Database, EventStore, World } from '../../../src/ports.ts'
import { StartupError } from '../../../src/lib/startupError.ts'
import { timeNow } from '../../../src/lib/time.ts'
import type { StartProgress } from '../progress.ts'
import { FILES, type LeafLine, type Manifest, MANIFEST, UNFINISHED } from './format.ts'
import { readmeText } from './readme.ts'

export type Exported = {
  readonly store: EventStore
  readonly database: Database
  readonly world: Pick<World, 'now' | 'sleep'>
  /** The file of heads, whose newest one the export ends with; it may be absent on this machine. */
  readonly headsFile: string
  readonly folder: string
  /** Null for the events of all tenants. */
  readonly tenant: string | null
  readonly startProgress: StartProgress
  readonly signal: AbortSignal
}

const OWNER_ONLY_FOLDER = 0o700

/** Creates the folder. Throws a StartupError for one that has anything but an unfinished export. */
const takeFolder = async (folder: string): Promise<void> => {
  await createFolders(folder, OWNER_ONLY_FOLDER).catch((error: unknown) => {
    throw new StartupError(`${folder} cannot be created.`, error)
  })
  const names = await readdir(folder)
  if (names.length > 0 && !names.includes(UNFINISHED))
    throw new StartupError(`${folder} is not empty: name a folder that is, or that does not exist.`)
  await writeFile(join(folder, UNFINISHED), 'This export is not finished; the same command begins it again.\n')
}

const BUFFER_BYTES = 256 * 1024
const OWNER_ONLY_FILE = 0o600

type Written = { readonly sha256: string; readonly bytes: number }

/** Writes a file of lines in pieces, with its length and its SHA-256. */
class LineWriter {
  private readonly file: FileHandle
  private readonly hash: Hash = createHash('sha256')
  private parts: Buffer[] = []
  private waiting = 0
  private bytes = 0

  private constructor(file: FileHandle) {
    this.file = file
  }

  /** Replaces a file of an unfinished export. */
  static async open(folder: string, name: string): Promise<LineWriter> {
    return new LineWriter(await open(join(folder, name), 'w', OWNER_ONLY_FILE))
  }

  async write(text: string | Buffer): Promise<void> {
    const part = Buffer.from(text)
    this.parts.push(part)
    this.waiting += part.length
    if (this.waiting >= BUFFER_BYTES) await this.flush()
  }

  /** On the disk when it resolves. */
  async end(): Promise<Written> {
    await this.flush()
    await this.file.sync()
    await this.file.close()
    return { sha256: this.hash.digest('hex'), bytes: this.bytes }
  }

  abandon(): Promise<void> {
    return this.file.close().catch(() => undefined)
  }

  private async flush(): Promise<void> {
    const piece = Buffer.concat(this.parts)
    this.parts = []
    this.waiting = 0
    this.bytes += piece.length
    this.hash.update(piece)
    await this.file.writeFile(piece)
  }
}

/** The writers of the two files that are written side by side, and the counts of the manifest. */
type Writing = {
  readonly events: LineWriter
  readonly leaves: LineWriter
  readonly counts: { events: number; missing: number; surplus: number }
}

/** An export of all tenants keeps credentials, so that the verification can count what it withholds. */
const isSecret = (stream: string, tenant: string | null): boolean =>
  tenant === null ? holdsLogSecret(stream) : holdsCredentials(stream)

/** An event that was signed for this tenant belongs to it, whatever the store says of it now. */
const isOwn = ({ leaf, event }: Pair, tenant: string | null): boolean => {
  if ([leaf, event].some(of => of !== undefined && isSecret(of.stream, tenant))) return false
  return tenant === null || (leaf ? leaf.tenant === tenant : event !== undefined && tenantOf(event) === tenant)
}

const withheldOf = ({ leaf, event }: Pair): NonNullable<LeafLine['withheld']> => {
  if (event === undefined) return 'missing'
  return leaf && leafHash(canonicalRecord(event)).equals(leaf.hash) ? 'present' : 'changed'
}

const leafLineOf = (pair: Pair, tenant: string | null): string | undefined => {
  const { leaf } = pair
  if (leaf === undefined) return undefined
  const about = isOwn(pair, tenant)
    ? { id: leaf.eventId, position: leaf.position.toString() }
    : { withheld: withheldOf(pair) }
  const { id, position, withheld } = about as { id?: string; position?: string; withheld?: string }
  // The members in the order of RFC 8785.
  return `${JSON.stringify({ id, index: leaf.index, leaf: leaf.hash.toString('hex'), position, withheld })}\n`
}

const writePair = async ({ events, leaves, counts }: Writing, pair: Pair, tenant: string | null): Promise<void> => {
  const line = leafLineOf(pair, tenant)
  if (line !== undefined) await leaves.write(line)
  if (pair.event === undefined) counts.missing += 1
  if (pair.leaf === undefined) counts.surplus += 1
  if (pair.event === undefined || !isOwn(pair, tenant)) return
  counts.events += 1
  await events.write(canonicalRecord(pair.event))
  await events.write('\n')
}

const writePairs = async (exported: Exported, head: Head, writing: Writing): Promise<void> => {
  const { store, database, tenant, signal, startProgress } = exported
  const progress = startProgress('evidence', 'events', { total: head.tree_size })
  try {
    const leaves = leavesBelow(database.sql, head.tree_size)
    for await (const pair of pairsOf(leaves, eventsUpTo(store, BigInt(head.position), signal))) {
      await writePair(writing, pair, tenant)
      if (pair.leaf) progress.advance(1)
    }
  } finally {
    progress.end()
  }
}

/** Writes one file by `work`. Removes nothing when it fails: the export stays marked as unfinished. */
const writeFileBy = async (
  folder: string,
  name: string,
  work: (writer: LineWriter) => Promise<void>,
): Promise<Written> => {
  const writer = await LineWriter.open(folder, name)
  try {
    await work(writer)
    return await writer.end()
  } catch (error) {
    await writer.abandon()
    throw error
  }
}

const writeHeads = ({ folder, database }: Exported, upTo: Head): Promise<Written> =>
  writeFileBy(folder, FILES.heads, async writer => {
    for await (const head of allHeads(database.sql)) {
      await writer.write(`${lineOf(head)}\n`)
      if (head.generation === upTo.generation && head.tree_size === upTo.tree_size) return
    }
  })

const STORED_WITHIN_MS = 5_000
const STORED_POLL_MS = 100

/** Whether Postgres has the head: the service writes it there some moments after the file. */
const isStored = async ({ database: { sql }, world }: Exported, head: Head): Promise<boolean> => {
  for (let waitedMs = 0; waitedMs <= STORED_WITHIN_MS; waitedMs += STORED_POLL_MS) {
    const [stored] = await headsAfter(sql, { generation: head.generation, tree_size: head.tree_size - 1 }, 1)
    if (stored?.signature === head.signature) return true
    await world.sleep(STORED_POLL_MS)
  }
  return false
}

/** The newest head. Throws a StartupError where there is none, or Postgres lacks it: an export up to an earlier one would hide events. */
const headToExport = async (exported: Exported): Promise<Head> => {
  const { database, store, world, headsFile } = exported
  const isTrusted = await trustedBy(headsFile, await publicKeys(database.sql))
  const head = await newestTrusted(database.sql, openHeadFile(headsFile), isTrusted)
  if (head === undefined)
    throw new StartupError(
      'There is no signed head yet: the service signs the first one some seconds after the first event.',
    )
  if (!(await isStored(exported, head)))
    throw new StartupError(
      `Postgres does not have the newest head of ${headsFile}, of ${head.tree_size} events at ${head.time}: see npm run -s ledger -- verify --only evidence.`,
    )
  // A follower may be behind. A log that was cut is exported as it is, and the verification of the export names it.
  await reaches(store, BigInt(head.position), world)
  return head
}

/** Writes the files, the manifest last. Resolves to the manifest. */
export const writeEvidence = async (exported: Exported): Promise<Manifest> => {
  const { folder, database, tenant, world } = exported
  // Before the head is read: a head of an earlier time is in the export.
  const created_at = timeNow(world)
  const head = await headToExport(exported)
  await takeFolder(folder)
  const counts = { events: 0, missing: 0, surplus: 0 }
  let leaves: Written | undefined
  const events = await writeFileBy(folder, FILES.events, async eventsWriter => {
    leaves = await writeFileBy(folder, FILES.leaves, leavesWriter =>
      writePairs(exported, head, { events: eventsWriter, leaves: leavesWriter, counts }),
    )
  })
  const heads = await writeHeads(exported, head)
  const readme = await writeFileBy(folder, FILES.readme, writer => writer.write(readmeText(tenant)))
  const { generation, tree_size, root, time, log } = head
  const manifest: Manifest = {
    v: 1,
    format: 'payment-ledger-evidence',
    log,
    tenant,
    created_at,
    head: { generation, tree_size, root, time },
    ...counts,
    files: {
      [FILES.events]: events,
      [FILES.leaves]: leaves ?? { sha256: '', bytes: 0 },
      [FILES.heads]: heads,
      [FILES.readme]: readme,
    },
    keys: Object.fromEntries(await publicKeys(database.sql)),
  }
  await writeFileBy(folder, MANIFEST, writer => writer.write(`${JSON.stringify(manifest, null, 2)}\n`))
  await rm(join(folder, UNFINISHED))
  return manifest
}
