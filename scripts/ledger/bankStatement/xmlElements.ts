import sax, { type QualifiedTag, type SAXOptions } from 'sax'
import { StatementError } from './statementLine.ts'

export type Element = {
  readonly name: string
  /** From 1. */
  readonly line: number
  readonly attributes: ReadonlyMap<string, string>
  /** The element's own text, with white space collapsed and trimmed when it is closed. */
  text: string
  readonly children: Element[]
}

export type XmlReader = {
  /** The namespace of the root's name; throws when the document cannot be read. */
  readonly onRoot: (root: Element, namespace: string) => void
  /** Called at the end of each element, with the names of its ancestors; false if the parent must not keep it. */
  readonly onEnd: (element: Element, path: readonly string[]) => boolean
}

/** Only the five entities of XML are known; the types of the parser lack this option. */
const OPTIONS: SAXOptions & { readonly strictEntities: boolean } = { xmlns: true, position: true, strictEntities: true }

const DEPTH_MAX = 64
const TEXT_CHARS_MAX = 10_000

const UTF8 = /^(?:utf-?8|us-ascii)$/i

type Fail = (reason: string) => never

/** The handlers of the parts of a document outside its elements. */
const prologHandlers = (fail: Fail) => ({
  onerror: (error: Error) => fail(`This is no well-formed XML: ${error.message.split('\n')[0] ?? ''}.`),
  // A document type may declare entities, a few lines of which can expand to gigabytes.
  ondoctype: () => fail('A document type declaration (DOCTYPE) is not accepted.'),
  onprocessinginstruction: ({ name, body }: { name: string; body: string }) => {
    const encoding = name === 'xml' ? /encoding\s*=\s*["']([^"']*)/.exec(body)?.[1] : undefined
    if (encoding !== undefined && !UTF8.test(encoding)) fail(`The encoding ${encoding} is not accepted: UTF-8.`)
  },
})

/** The handlers of elements and their texts. `lineNow` is the parser's line, from 1. */
const elementHandlers = ({ onRoot, onEnd }: XmlReader, fail: Fail, lineNow: () => number) => {
  const open: Element[] = []
  let namespace: string | undefined
  /** The depth of elements inside one of another namespace, all of which are left out. */
  let foreign = 0
  const onopentag = (tag: sax.Tag | QualifiedTag): void => {
    const { uri, local: name, attributes: given } = tag as QualifiedTag
    const attributes = new Map(Object.values(given).map(({ name, value }) => [name, value]))
    const element = { name, line: lineNow(), attributes, text: '', children: [] }
    if (namespace === undefined) onRoot(element, uri)
    namespace ??= uri
    if (foreign > 0 || uri !== namespace) foreign += 1
    else if (open.push(element) > DEPTH_MAX) fail('The elements are nested too deeply.')
  }
  const addText = (text: string): void => {
    const element = open.at(-1)
    if (foreign > 0 || element === undefined) return
    // The indentation between elements is no text of their parent.
    if (element.text === '' && text.trim() === '') return
    element.text += text
    if (element.text.length > TEXT_CHARS_MAX) fail(`The text of ${element.name} is longer than any permitted one.`)
  }
  const onclosetag = (): void => {
    if (foreign > 0) return void (foreign -= 1)
    const element = open.pop()
    if (element === undefined) return
    element.text = element.text.replaceAll(/\s+/g, ' ').trim()
    const path = open.map(({ name }) => name)
    if (onEnd(element, path)) open.at(-1)?.children.push(element)
  }
  return { hasRoot: () => namespace !== undefined, on: { onopentag, ontext: addText, oncdata: addText, onclosetag } }
}

/**
 * Reads a document element by element; elements of other namespaces than the root's are left out. Yields after each
 * chunk. Throws a StatementError with the line for a document that is not well-formed, that declares entities, or that
 * is no UTF-8.
 */
export const readXml = async function* (chunks: AsyncIterable<string>, reader: XmlReader): AsyncGenerator<void> {
  const parser = sax.parser(true, OPTIONS)
  const lineNow = (): number => parser.line + 1
  const fail: Fail = reason => {
    throw new StatementError(lineNow(), reason)
  }
  const elements = elementHandlers(reader, fail, lineNow)
  Object.assign(parser, prologHandlers(fail), elements.on)
  for await (const chunk of chunks) {
    parser.write(chunk)
    yield
  }
  parser.close()
  if (!elements.hasRoot()) fail('This is no XML document: it has no element.')
}

/** The first element at the path below this one. */
export const childOf = (element: Element | undefined, ...path: readonly string[]): Element | undefined =>
  path.reduce<Element | undefined>((parent, name) => parent?.children.find(child => child.name === name), element)

export const childrenOf = (element: Element, ...path: readonly string[]): readonly Element[] =>
  path.reduce<readonly Element[]>(
    (parents, name) => parents.flatMap(({ children }) => children.filter(child => child.name === name)),
    [element],
  )

/** The text of the element at the path; undefined without one, and for an empty one. */
export const textAt = (element: Element | undefined, ...path: readonly string[]): string | undefined =>
  childOf(element, ...path)?.text || undefined
