#!/bin/bash
# What the official image does with the variables KAFKA_…: each is a property of the broker.
set -eu
cd /opt/kafka
env | sed -nE 's/^KAFKA_([A-Z_]+)=(.*)/\1 \2/p' | while read -r name value; do
  name=${name,,}
  echo "${name//_/.}=$value"
done >config/server.properties
classpath='/opt/kafka/libs/*'
logging='-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'
# The tool prints all settings.
java -cp "$classpath" "$logging" kafka.tools.StorageTool format --ignore-formatted \
  --cluster-id "${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}" -c config/server.properties >/dev/null
exec java -Xmx512m -XX:+UseSerialGC -cp "$classpath" "$logging" \
  -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info kafka.Kafka config/server.properties
