/**
 * The Unix socket of the embedded Postgres, which costs less CPU for a message than TCP. The processes of the service
 * use it; everything else uses the TCP address. Both are served always, except where there can be no socket: on Windows,
 * in a data directory with a long path, and on some file systems. TCP serves alone there.
 */

import { once } from 'node:events'
import { chmod, chown, mkdir, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { directoryRefusal } from '../dataDirectory.ts'
import type { Launch } from './launch.ts'
import { systemCode } from '../../lib/startupError.ts'

/** The shortest limit of the systems: macOS permits 103 bytes, Linux 107. */
const PATH_BYTES_MAX = 103
const OWNER_ONLY = 0o700
const DISK_IS_FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])

const folderIn = (directory: string): string => join(directory, 'socket')

/** The name that Postgres and its clients give the socket. */
const fileIn = (folder: string, port: number | string): string => join(folder, `.s.PGSQL.${port}`)

/** Whether a path is permitted does not depend on the port of this start. */
const isTooLong = (folder: string): boolean => Buffer.byteLength(fileIn(folder, 65_535)) > PATH_BYTES_MAX

/** Whether there can be a socket, and be made private, as Postgres makes its own: some mounted folders refuse one or the other. */
const canListen = async (path: string): Promise<boolean> => {
  const server = createServer()
  try {
    server.listen(path)
    await once(server, 'listening')
    await chmod(path, OWNER_ONLY)
    return true
  } catch (error) {
    if (DISK_IS_FULL.has(systemCode(error) ?? '')) throw error
    return false
  } finally {
    server.close()
  }
}

/**
 * The folder for the socket in Postgres's data directory, private and empty; undefined where there can be no socket. The
 * caller holds the lock of the directory. Files of a killed server are removed, because its lock file names a pid that
 * another program may have now. Throws a StartupError if the folder cannot be made.
 */
export const makeSocketFolder = async (directory: string, launch: Launch): Promise<string | undefined> => {
  const folder = folderIn(directory)
  if (process.platform === 'win32') return undefined
  try {
    await rm(folder, { recursive: true, force: true })
    if (isTooLong(folder)) return undefined
    await mkdir(folder, { mode: OWNER_ONLY })
    const isUsable = await canListen(fileIn(folder, 0))
    if (launch.account) await chown(folder, launch.account.uid, launch.account.gid)
    return isUsable ? folder : undefined
  } catch (error) {
    throw directoryRefusal(directory, error)
  }
}

/** The value of the setting `unix_socket_directories`, which is a list: the quotes permit commas and spaces in a path. */
export const socketSetting = (folder: string | undefined): string =>
  folder === undefined ? '' : `"${folder.replaceAll('"', '""')}"`

const canConnect = async (path: string): Promise<boolean> => {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/**
 * The connection string by which the processes of the service reach the Postgres that has started in `directory` and has
 * this TCP address: through the socket if it accepts connections, else the address itself. Its host and port are those of
 * the address; the parameter `host`, as in libpq, names the folder of the socket. It stays valid when Postgres starts
 * again on the same port.
 */
export const ownConnectionString = async (directory: string, address: string): Promise<string> => {
  const url = new URL(address)
  const folder = folderIn(directory)
  if (isTooLong(folder) || !(await canConnect(fileIn(folder, url.port)))) return address
  // URLSearchParams would write a space as +, which libpq does not read.
  url.search = `host=${encodeURIComponent(folder)}`
  return url.href
}
