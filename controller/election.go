package controller

import "slices"

// Choosing a leader, as pure functions. Each selector answers (leadership, true) for a successful election, or
// false when no replica may lead. The leader epoch grows by one with every success, even when the leader stays,
// so that a broker can tell the new state from the old (KIP-101, KIP-279).
//
// Invariants of every answer: the leader is a member of the ISR; the ISR is a non-empty subset of the replicas that
// were in it before, except after an unclean election, when it is the new leader alone.

// candidate is all that an election looks at.
type candidate struct {
	current leadership
	// replicas in order of preference: the assignment, or the target of a reassignment.
	replicas []int32
	// online are brokers that are alive, not shutting down, and whose log directory for this partition works.
	online []int32
	// adding are the replicas that are being added; awaited are those whose brokers have not confirmed yet that they have them.
	adding, awaited []int32
	// stopping are the brokers that asked for a controlled shutdown; they may be alive but must not win.
	stopping []int32
	// unclean allows a leader from outside the ISR, at the price of committed records.
	unclean bool
	// markRecovery makes an unclean leader a recovering one (KIP-704).
	markRecovery bool
}

func (c candidate) eligible(id int32) bool {
	return slices.Contains(c.online, id) && slices.Contains(c.current.isr, id)
}

func firstWhere(ids []int32, ok func(int32) bool) (int32, bool) {
	if i := slices.IndexFunc(ids, ok); i >= 0 {
		return ids[i], true
	}
	return noLeader, false
}

// electNoOp keeps leader and ISR and only opens a new leader epoch: brokers learn of a changed replica list.
func electNoOp(c candidate) (leadership, bool) {
	return c.current.withLeader(c.current.leader, c.current.isr), true
}

// electOffline finds a leader for a partition that has none: the first replica online and in the ISR; if there is
// none and unclean election is allowed, the first replica online that is not awaited. Who is being added comes last, since
// it has what it has fetched so far, and may have nothing; Apache Kafka takes the order of the assignment, in which the added
// ones may be first.
func electOffline(c candidate) (leadership, bool) {
	if leader, ok := firstWhere(c.replicas, c.eligible); ok {
		isr := slices.DeleteFunc(slices.Clone(c.current.isr), func(id int32) bool { return !slices.Contains(c.online, id) })
		return c.current.withLeader(leader, isr), true
	}
	if !c.unclean {
		return leadership{}, false
	}
	may := func(id int32) bool { return slices.Contains(c.online, id) && !slices.Contains(c.awaited, id) }
	leader, ok := firstWhere(without(c.replicas, c.adding), may)
	if !ok {
		leader, ok = firstWhere(c.adding, may)
	}
	if !ok {
		return leadership{}, false
	}
	won := c.current.withLeader(leader, []int32{leader})
	if c.markRecovery {
		won.recovery = recovering
	}
	return won, true
}

// electReassigned moves the leadership into the target set of a reassignment.
func electReassigned(c candidate) (leadership, bool) {
	leader, ok := firstWhere(c.replicas, c.eligible)
	if !ok {
		return leadership{}, false
	}
	return c.current.withLeader(leader, c.current.isr), true
}

// electPreferred gives the leadership to the first replica of the assignment, or to nobody.
func electPreferred(c candidate) (leadership, bool) {
	if len(c.replicas) == 0 || !c.eligible(c.replicas[0]) {
		return leadership{}, false
	}
	return c.current.withLeader(c.replicas[0], c.current.isr), true
}

// electControlledShutdown moves the leadership away from brokers that are about to stop, and takes them out of the
// ISR in the same step. Here online includes the stopping brokers: they still answer, so they still receive the change.
func electControlledShutdown(c candidate) (leadership, bool) {
	leader, ok := firstWhere(c.replicas, func(id int32) bool { return c.eligible(id) && !slices.Contains(c.stopping, id) })
	if !ok {
		return leadership{}, false
	}
	return c.current.withLeader(leader, without(c.current.isr, c.stopping)), true
}
