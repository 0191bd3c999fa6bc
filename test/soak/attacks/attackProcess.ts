import type { Attack, Target } from './attack.ts'

/** The process of an attack: begins and pauses at its parent's messages, and reports the outcomes at each pause. */

const [, , file = '', json = ''] = process.argv
const { attack } = (await import(file)) as { readonly attack: Attack }
const target = JSON.parse(json) as Target
await attack.prepare?.(target)

let stop = new AbortController()
let outcomes: Promise<object> = Promise.resolve({})

process.on('message', (message: 'begin' | 'pause') => {
  if (message === 'begin') {
    stop = new AbortController()
    outcomes = attack.run(target, stop.signal)
    return
  }
  stop.abort()
  void outcomes.then(counted => process.send?.(counted))
})
process.on('disconnect', () => process.exit())
process.send?.({})
