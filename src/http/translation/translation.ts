import type { AnyRoute } from '../route.ts'
import { translator as version20261101 } from './2026-11-01.ts'
import type { Translator } from './changes.ts'
import { NEWEST_VERSION, type OlderVersion, type Version, VERSIONS } from '../versions/index.ts'

/**
 * The routes of an older contract, made from those of the newest: a translated route checks requests by the older
 * schema, translates them up for the handler, and translates its responses down. Routes that did not change are the
 * same objects, so the newest version and unchanged routes cost nothing.
 */

const TRANSLATORS: Readonly<Record<OlderVersion, Translator>> = { '2026-11-01': version20261101 }

/** These routes, which are declared in the newest shape, as the version has them. In the same order. */
export const inVersion = (routes: readonly AnyRoute[], version: Version): readonly AnyRoute[] =>
  routes.map(route => routeIn(route, version))

/** The route as the version has it: translated from version to version, backwards from the newest. */
export const routeIn = (route: AnyRoute, version: Version): AnyRoute =>
  VERSIONS.slice(VERSIONS.indexOf(version))
    .filter(older => older !== NEWEST_VERSION)
    .reduceRight((next, older) => TRANSLATORS[older][next.operationId]?.(next) ?? next, route)
