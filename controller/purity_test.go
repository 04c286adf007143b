package controller

import (
	"testing"

	"barnabas/integration/purecore"
)

func TestTheCoreKeepsToItsRule(t *testing.T) {
	purecore.Check(t, ".", "assignment.go", "broker_change.go", "context.go", "controlled_shutdown.go", "controllership.go", "counts.go",
		"election.go", "eventloop.go", "events.go", "failover.go", "features.go", "ibp.go", "isr_change.go", "order.go", "outbox.go",
		"partition_states.go", "preferred.go", "producer_ids.go", "reassignment.go", "reassignment_requests.go", "replica_states.go",
		"requests.go", "topic_change.go", "topic_deletion.go", "zkio.go", "znodes.go")
}
