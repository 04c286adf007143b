package controller

// Counts is what the controller knows, for its metrics; all zero while this broker is not the controller.
type Counts struct {
	Brokers, Topics, Partitions int
	// Offline partitions have no leader; Imbalanced ones are led by another than their first replica.
	Offline, Imbalanced int
	// TopicsToDelete wait for deletion, TopicsHalted of them are halted; ReplicasToDelete are not deleted yet.
	TopicsToDelete, TopicsHalted, ReplicasToDelete, ReplicasHalted int
	Reassigning                                                    int
}

// Counts counts over the whole state.
func (c *Core) Counts() Counts {
	var n Counts
	if c.cluster == nil {
		return n
	}
	n.Brokers, n.Topics = len(c.cluster.brokers), len(c.cluster.topics)
	for _, name := range sortedKeys(c.cluster.topics) {
		if t := c.cluster.topics[name]; t.queuedForDeletion {
			n.TopicsToDelete++
			if t.deletionIneligible {
				n.TopicsHalted++
			}
		}
	}
	c.cluster.each(func(tp TopicPartition, t *topic, p *partition) {
		n.Partitions++
		if p.reassigning {
			n.Reassigning++
		}
		if t.queuedForDeletion {
			for _, id := range p.assignment.replicas {
				switch p.replicas[id] {
				case deletionSuccessful:
				case deletionIneligible:
					n.ReplicasHalted++
					n.ReplicasToDelete++
				default:
					n.ReplicasToDelete++
				}
			}
			return
		}
		if p.state == offlinePartition {
			n.Offline++
		}
		if p.leadership != nil && p.leadership.leader != p.assignment.replicas[0] && !p.assignment.reassigning() {
			n.Imbalanced++
		}
	})
	return n
}
