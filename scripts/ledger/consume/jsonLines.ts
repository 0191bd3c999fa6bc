import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { systemCode } from '../../../src/lib/startupError.ts'

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The lines of a file, of which one that is not JSON has no value; none if there is no file. */
export async function* factLines(path: string) {
  const input = createReadStream(path)
  let number = 0
  try {
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1
      yield { number, value: parsed(text) }
    }
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
}

const LINE_FEED = 10
const LOOK_BACK_BYTES = 65_536

/** Truncates the file after its last line feed, which removes a write that its process did not complete. */
export const keepWholeLines = async (path: string): Promise<void> => {
  const file = await open(path, 'a+')
  try {
    const { size } = await file.stat()
    let end = size
    while (end > 0) {
      const begin = Math.max(0, end - LOOK_BACK_BYTES)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(end - begin), 0, end - begin, begin)
      const lineFeed = buffer.subarray(0, bytesRead).lastIndexOf(LINE_FEED)
      if (lineFeed >= 0) {
        end = begin + lineFeed + 1
        break
      }
      end = begin
    }
    if (end < size) await file.truncate(end)
  } finally {
    await file.close()
  }
}
