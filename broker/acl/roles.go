package acl

import "github.com/twmb/franz-go/pkg/kmsg"

// Need is what a role does to resources of a type.
type Need struct {
	Resource   kmsg.ACLResourceType // ANY: whatever was named
	Operations []kmsg.ACLOperation
}

// ProducerNeeds are those of a producer, transactional or not, in the order in which kafka-acls lists them.
func ProducerNeeds() []Need {
	return []Need{
		{kmsg.ACLResourceTypeTopic, []kmsg.ACLOperation{kmsg.ACLOperationCreate, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe}},
		{kmsg.ACLResourceTypeTransactionalId, []kmsg.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe}},
	}
}

// IdempotentNeed is what an idempotent producer without a transactional id needs besides (until KIP-679).
func IdempotentNeed() Need {
	return Need{kmsg.ACLResourceTypeCluster, []kmsg.ACLOperation{kmsg.ACLOperationIdempotentWrite}}
}

// ConsumerNeeds are those of a consumer in a group.
func ConsumerNeeds() []Need {
	return []Need{
		{kmsg.ACLResourceTypeTopic, []kmsg.ACLOperation{kmsg.ACLOperationDescribe, kmsg.ACLOperationRead}},
		{kmsg.ACLResourceTypeGroup, []kmsg.ACLOperation{kmsg.ACLOperationRead}},
	}
}
