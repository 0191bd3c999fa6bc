import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor'
import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { Service } from 'kubernetes-models/v1/Service'
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount'

/** Checks objects of Kubernetes against its schemas, more strictly than these: an unknown member is an error. */

type Model = { readonly prototype: { readonly validate: () => void } }

const MODELS: Readonly<Record<string, Model>> = {
  'apps/v1 Deployment': Deployment,
  'autoscaling/v2 HorizontalPodAutoscaler': HorizontalPodAutoscaler,
  'monitoring.coreos.com/v1 PrometheusRule': PrometheusRule,
  'monitoring.coreos.com/v1 ServiceMonitor': ServiceMonitor,
  'networking.k8s.io/v1 NetworkPolicy': NetworkPolicy,
  'policy/v1 PodDisruptionBudget': PodDisruptionBudget,
  'v1 ConfigMap': ConfigMap,
  'v1 Service': Service,
  'v1 ServiceAccount': ServiceAccount,
}

export type Labels = Readonly<Record<string, string>>

export type Manifest = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Labels }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** The same object, which records the path of each member that is read. */
const observed = (node: object, read: Set<string>, path = ''): object =>
  new Proxy(node, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key)
      if (typeof key === 'symbol') return value
      const inner = `${path}/${key}`
      read.add(inner)
      return isObject(value) ? observed(value, read, inner) : value
    },
  })

const pathsIn = (node: object, path = ''): string[] =>
  Object.entries(node).flatMap(([key, value]: [string, unknown]) => {
    const inner = `${path}/${key}`
    return [inner, ...(isObject(value) ? pathsIn(value, inner) : [])]
  })

/** The faults of an object. A validator reads every member that its schema has, and none of the others. */
export const faultsOf = (manifest: Manifest): readonly string[] => {
  const { apiVersion, kind } = manifest
  const model = MODELS[`${apiVersion} ${kind}`]
  if (model === undefined) return [`There is no schema of ${apiVersion} ${kind}.`]
  const read = new Set<string>()
  try {
    // The constructor would copy the object, and so read all of it.
    model.prototype.validate.call(observed(manifest, read))
  } catch (error) {
    return [(error as Error).message]
  }
  return pathsIn(manifest)
    .filter(path => !read.has(path))
    .map(path => `${path} is no member of ${kind}`)
}

export type Container = {
  readonly name: string
  readonly image: string
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
  readonly securityContext: Readonly<Record<string, unknown>>
} & Readonly<
  Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', { readonly httpGet: { readonly path: string } }>
>

export type PodSpec = {
  readonly serviceAccountName: string
  readonly automountServiceAccountToken: boolean
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: Readonly<Record<string, unknown>>
  readonly containers: readonly Container[]
  readonly volumes: readonly Readonly<Record<string, unknown>>[]
}

const PERMITTED_VOLUMES = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
])

/** What violates the Pod Security Standard "restricted". */
export const violationsOf = (pod: PodSpec): readonly string[] => {
  const shared = ['hostNetwork', 'hostPID', 'hostIPC'].filter(name => name in pod)
  const ofPod = [
    pod.securityContext['runAsNonRoot'] === true || 'runAsNonRoot',
    pod.securityContext['runAsUser'] !== 0 || 'runAsUser',
    JSON.stringify(pod.securityContext['seccompProfile']) === '{"type":"RuntimeDefault"}' || 'seccompProfile',
    pod.volumes.every(({ name: _, ...source }) => Object.keys(source).every(type => PERMITTED_VOLUMES.has(type))) ||
      'volumes',
  ]
  const ofContainers = pod.containers.flatMap(({ securityContext: own, ports }) => [
    own['allowPrivilegeEscalation'] === false || 'allowPrivilegeEscalation',
    JSON.stringify(own['capabilities']) === '{"drop":["ALL"]}' || 'capabilities',
    !('privileged' in own || 'procMount' in own || 'runAsUser' in own) || 'securityContext',
    ports.every(port => !('hostPort' in port)) || 'hostPort',
    // Beyond the standard.
    own['readOnlyRootFilesystem'] === true || 'readOnlyRootFilesystem',
  ])
  return [...shared, ...ofPod, ...ofContainers].filter(fault => typeof fault === 'string')
}
