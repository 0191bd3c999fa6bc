import type { ProtobufReader } from './protobufReader.ts'

/** Reads one field of a nested message and skips its others. `field` is the tag of the field. */

/** Empty if the field is absent. */
export const textIn = (from: ProtobufReader, field: number): string => {
  const outer = from.open()
  let text = ''
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === field) text = from.text()
    else from.skipField(tag)
  }
  from.close(outer)
  return text
}

/** Zero if the field is absent. */
export const uint64In = (from: ProtobufReader, field: number): bigint => {
  const outer = from.open()
  let value = 0n
  while (from.hasMore()) {
    const tag = from.tag()
    if (tag === field) value = from.uint64()
    else from.skipField(tag)
  }
  from.close(outer)
  return value
}
