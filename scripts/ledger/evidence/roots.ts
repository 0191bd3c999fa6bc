import type { Head } from '../../../src/evidence/heads.ts'
import type { Frontier } from '../../../src/evidence/merkle.ts'
import type { Finding } from '../verify/check.ts'

/** The heads of one source that belong to a generation, as they are reached by the growing tree. */
export class RootComparison {
  private readonly heads: AsyncIterator<Head>
  private readonly named: string
  private next: Head | undefined
  private started = false
  /** The size of the last head that agrees. */
  agreedSize = 0
  compared = 0
  firstDifferent: Head | undefined
  /** The first head that was reached when the tree had grown beyond it. */
  private firstPassedOver: Head | undefined

  /** `named` is the source in findings: `heads.jsonl`. */
  constructor(heads: AsyncIterable<Head>, named: string) {
    this.heads = heads[Symbol.asyncIterator]()
    this.named = named
  }

  /** To be called after each leaf, and once before the first. */
  async reached(tree: Frontier): Promise<void> {
    if (!this.started) await this.advance()
    while (this.next !== undefined && this.next.tree_size <= tree.size) {
      // A head that is smaller than one before it was written by a process that was being replaced: its chain is checked.
      if (this.next.tree_size === tree.size) this.compare(this.next, tree)
      else this.firstPassedOver ??= this.next
      await this.advance()
    }
  }

  /** Whether there are heads that the tree has not reached. */
  hasNext(): boolean {
    return this.next !== undefined
  }

  async *rest(): AsyncGenerator<Head> {
    for (; this.next !== undefined; await this.advance()) yield this.next
  }

  /** Ends the reading of the heads before their end. */
  async close(): Promise<void> {
    await this.heads.return?.()
  }

  finding(): Finding | undefined {
    const head = this.firstDifferent
    if (head === undefined) return undefined
    return {
      kind: 'edited',
      detail:
        `The tree does not lead to the head of ${head.tree_size} events in ${this.named}: events from ${this.agreedSize + 1} ` +
        `to ${head.tree_size} were changed together with their hashes, or the head is of another log.`,
      place: { from_index: this.agreedSize, to_index: head.tree_size - 1 },
    }
  }

  /** For heads whose chain nothing else checks. */
  passedOverFinding(): Finding | undefined {
    const head = this.firstPassedOver
    if (head === undefined) return undefined
    return {
      kind: 'not_compared',
      detail:
        `The heads in ${this.named} are not in the order of their sizes: that of ${head.tree_size} events, of ${head.time}, comes ` +
        'after a larger one, and was not compared. Sort them by tree_size.',
      place: { tree_size: head.tree_size },
    }
  }

  private compare(head: Head, tree: Frontier): void {
    this.compared += 1
    if (tree.root().toString('hex') === head.root) {
      if (this.firstDifferent === undefined) this.agreedSize = head.tree_size
    } else this.firstDifferent ??= head
  }

  private async advance(): Promise<void> {
    this.started = true
    const { done, value } = await this.heads.next()
    this.next = done ? undefined : value
  }
}
