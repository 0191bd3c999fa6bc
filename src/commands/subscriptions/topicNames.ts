/** The names of the Kafka topics of a subscription, and of the consumer groups in which its principal reads them. */
export const topicNamesOf = (id: string) => ({
  topic: `ledger.subscription.${id}`,
  deadLetterTopic: `ledger.subscription.${id}.dlq`,
  groupPrefix: `ledger.subscription.${id}`,
})
