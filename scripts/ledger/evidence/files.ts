import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { keyIdOf } from '../../../src/evidence/heads.ts'
import { type Line, linesOf } from '../../../src/evidence/lines.ts'
import { StartupError, systemCode } from '../../../src/lib/startupError.ts'
import { type Manifest, MANIFEST, manifestSchema } from './format.ts'

const MANIFEST_BYTES_MAX = 16 * 1024 * 1024

const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined))?.isFile() === true

export type ReadManifest = { readonly manifest: Manifest } | { readonly unreadable: string }

const parseManifest = (text: string): ReadManifest => {
  try {
    const document: unknown = JSON.parse(text)
    const parsed = manifestSchema.safeParse(document)
    if (parsed.success) return { manifest: parsed.data }
    const { path, message } = parsed.error.issues[0] ?? { path: [], message: '' }
    const version = (document as { readonly v?: unknown } | null)?.v
    if (path[0] === 'v') return { unreadable: `its version ${JSON.stringify(version)} is unknown to this program` }
    return { unreadable: `${path.join('.')}: ${message}` }
  } catch {
    return { unreadable: 'it is not JSON' }
  }
}

/** Throws a StartupError where there is no export. */
export const readManifest = async (folder: string): Promise<ReadManifest> => {
  const path = join(folder, MANIFEST)
  if (!(await isThere(path))) {
    if ((await stat(folder).catch(() => undefined))?.isDirectory() !== true)
      throw new StartupError(`There is no folder ${folder}. Name one that ledger export --evidence has written.`)
    return { unreadable: 'it does not exist: this is no folder of an export, or the export is incomplete' }
  }
  const { size } = await stat(path)
  if (size > MANIFEST_BYTES_MAX) return { unreadable: `it has ${size} bytes, which no manifest has` }
  return parseManifest(await readFile(path, 'utf8'))
}

/** Undefined for a file that is not there. */
export const hashOfFile = async (folder: string, name: string, signal: AbortSignal): Promise<string | undefined> => {
  const path = join(folder, name)
  if (!(await isThere(path))) return undefined
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/** The lines of a file; none of a file that is not there. */
export async function* linesIn(path: string, signal: AbortSignal): AsyncGenerator<Line> {
  if (!(await isThere(path))) return
  yield* linesOf(createReadStream(path, { signal }))
}

const PEM = /-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g

const keysIn = (text: string): readonly KeyObject[] =>
  text.includes('-----BEGIN')
    ? [...text.matchAll(PEM)].map(([block]) => createPublicKey(block))
    : [createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })]

/** The ids and keys in a file: PEM, or one in base64 of SubjectPublicKeyInfo. Throws a StartupError. */
export const readPublicKeys = async (path: string): Promise<readonly (readonly [id: string, publicKey: string])[]> => {
  try {
    const keys = keysIn(await readFile(path, 'utf8'))
    if (keys.length === 0) throw new Error('There is no whole block of PEM.')
    return keys.map(key => {
      const spki = key.export({ format: 'der', type: 'spki' })
      return [keyIdOf(spki), spki.toString('base64')]
    })
  } catch (error) {
    if (systemCode(error) === 'ENOENT') throw new StartupError(`There is no file ${path}.`, error)
    throw new StartupError(
      `${path} does not contain a public key. --key takes the public key of the service, as npm run -s ledger -- evidence key prints it ` +
        `(PEM, or base64-encoded SubjectPublicKeyInfo); --heads takes a file of heads.`,
      error,
    )
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON value of a line; the reason where it has none. */
export const jsonIn = ({ bytes, flaw }: Line): { readonly value: unknown } | { readonly unreadable: string } => {
  if (flaw === 'too_long') return { unreadable: 'the line is longer than any event' }
  if (flaw === 'torn') return { unreadable: 'the file ends within the line' }
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return { unreadable: 'the line is not UTF-8' }
  }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { unreadable: 'the line is not JSON' }
  }
}
