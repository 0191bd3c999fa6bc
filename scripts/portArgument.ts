import { InvalidArgumentError } from 'commander'
import { portOf } from '../src/lib/portNumber.ts'

/** A port of a command line. */
export const portArgument = (text: string): number => {
  const port = portOf(text)
  if (port !== undefined) return port
  throw new InvalidArgumentError('A port is a number from 0 to 65535.')
}
