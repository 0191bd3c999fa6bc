import { randomUUID } from 'node:crypto'
import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import gossip from '@eventstore/db-client/generated/gossip_pb.js'
import type { ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js'
import features from '@eventstore/db-client/generated/serverfeatures_pb.js'
import type { SupportedMethods } from '@eventstore/db-client/generated/serverfeatures_pb.js'
import { ticksOf } from '../record.ts'
import { uuidMessage } from './messages.ts'

/** The version of EventStoreDB whose protocol this node implements. */
const SERVER_VERSION = '24.10.0'

const STREAMS = 'event_store.client.streams.streams'
const METHODS = [
  { service: STREAMS, method: 'append', features: [] },
  { service: STREAMS, method: 'batchappend', features: [] },
  { service: STREAMS, method: 'delete', features: [] },
  { service: STREAMS, method: 'read', features: ['position', 'events'] },
  { service: STREAMS, method: 'tombstone', features: [] },
  { service: 'event_store.client.gossip.gossip', method: 'read', features: [] },
  { service: 'event_store.client.server_features.serverfeatures', method: 'getsupportedmethods', features: [] },
] as const

export const supportedMethods = <Q>(
  _call: ServerUnaryCall<Q, SupportedMethods>,
  callback: sendUnaryData<SupportedMethods>,
): void => {
  const answer = new features.SupportedMethods().setEventStoreServerVersion(SERVER_VERSION)
  for (const { service, method, features: names } of METHODS) {
    const supported = new features.SupportedMethod().setServiceName(service).setMethodName(method)
    answer.addMethods(supported.setFeaturesList([...names]))
  }
  callback(null, answer)
}

/** A cluster with this node as its only member and leader. */
export const gossipRead = (address: string, port: () => number) => {
  const instanceId = randomUUID()
  return <Q>(_call: ServerUnaryCall<Q, ClusterInfo>, callback: sendUnaryData<ClusterInfo>): void => {
    const endPoint = new gossip.EndPoint().setAddress(address).setPort(port())
    const member = new gossip.MemberInfo()
      .setInstanceId(uuidMessage(instanceId, 'structured'))
      .setTimeStamp(ticksOf(Date.now()).toString())
      .setState(gossip.MemberInfo.VNodeState.LEADER)
      .setIsAlive(true)
      .setHttpEndPoint(endPoint)
    callback(null, clusterOf(member))
  }
}

const clusterOf = (member: InstanceType<typeof gossip.MemberInfo>): ClusterInfo => {
  const cluster = new gossip.ClusterInfo()
  cluster.addMembers(member)
  return cluster
}
