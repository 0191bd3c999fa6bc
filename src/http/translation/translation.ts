import type { AnyRoute } from '../route.ts'
import { translator as version20261101 } from './2026-11-01.ts'
import type { Translator } from './changes.ts'
import { NEWEST_VERSION, type OlderVersion, type Version, VERSIONS } from '../versions/index.ts'

/** Requests of an older contract are translated up, responses down. A route without changes is the same object. */

const TRANSLATORS: Readonly<Record<OlderVersion, Translator>> = { '2026-11-01': version20261101 }

/** These routes, which are declared in the newest shape, as the version has them. In the same order. */
export const inVersion = (routes: readonly AnyRoute[], version: Version): readonly AnyRoute[] =>
  routes.map(route => routeIn(route, version))

/** The route as the version has it: translated from version to version, backwards from the newest. */
export const routeIn = (route: AnyRoute, version: Version): AnyRoute =>
  VERSIONS.slice(VERSIONS.indexOf(version))
    .filter(older => older !== NEWEST_VERSION)
    .reduceRight((next, older) => TRANSLATORS[older][next.operationId]?.(next) ?? next, route)
