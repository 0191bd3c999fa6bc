import { expect } from 'chai'
import { mergePatch } from '../../src/http/mergePatch.ts'

/** The test cases of RFC 7396, appendix A: original, patch, result. */
const EXAMPLES: readonly (readonly [string, string, string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
]

describe('merge patch', () => {
  for (const [original, patch, result] of EXAMPLES)
    it(`${original} patched with ${patch} is ${result}`, () => {
      const target: unknown = JSON.parse(original)
      expect(mergePatch(target, JSON.parse(patch))).to.deep.equal(JSON.parse(result))
      expect(JSON.stringify(target), 'the target is left as it is').to.equal(original)
    })
})
