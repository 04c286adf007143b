package broker

import (
	"strconv"
	"strings"
	"time"

	"barnabas/broker/group"
	"barnabas/broker/metrics"
	"barnabas/broker/partition"
	"barnabas/broker/quota"
	"barnabas/broker/wire"
	"barnabas/zkstate"
)

// States of a broker as Kafka numbers them.
const (
	stateStarting    = 1
	stateRunning     = 3
	stateHandingOver = 6
)

// groupsWait is how long a scrape waits for the group coordinator's partitions, each of which answers in its turn.
const groupsWait = time.Second

// Measure adds what this broker counts to a scrape, once it serves. It looks at every partition and changes nothing.
// Requests are counted only where barnabas.metrics.listener is set.
func (b *Broker) Measure(s *metrics.Scrape) {
	s.Set(&metrics.BrokerState, float64(b.state.Load()))
	s.Set(&metrics.Connections, float64(b.server.Connections()))
	s.Set(&metrics.ZKDisconnects, float64(b.zk.Announced(zkstate.Disconnected)))
	s.Set(&metrics.ZKConnects, float64(b.zk.Announced(zkstate.SessionStarted)+b.zk.Announced(zkstate.Connected)))
	s.Set(&metrics.ZKExpires, float64(b.zk.Announced(zkstate.SessionExpired)))
	s.Set(&metrics.ZKAuthFailures, float64(b.zk.Announced(zkstate.AuthFailed)))
	measureArrivals(s, b.arrivals.Rates(time.Now()))
	if b.requests != nil {
		b.requests.Collect(s, time.Now())
	}
	b.measureReplicas(s)
	b.measureTraffic(s)
	b.measureDirectories(s)
	b.measureGroups(s)
	b.measureQuotas(s)
}

func (b *Broker) measureReplicas(s *metrics.Scrape) {
	n := b.replicas.Counts()
	s.Set(&metrics.PartitionCount, float64(n.Replicas+n.Offline))
	s.Set(&metrics.LeaderCount, float64(n.Leaders))
	s.Set(&metrics.OfflineReplicas, float64(n.Offline))
	s.Set(&metrics.UnderReplicated, float64(n.UnderReplicated))
	s.Set(&metrics.UnderMinISR, float64(n.UnderMinISR))
	s.Set(&metrics.AtMinISR, float64(n.AtMin))
	s.Set(&metrics.Reassigning, float64(n.Reassigning))
	s.Set(&metrics.ISRShrinks, float64(n.ISRShrunk))
	s.Set(&metrics.ISRExpands, float64(n.ISRExpanded))
	s.Set(&metrics.FailedISRUpdates, float64(n.ISRFailed))
	for operation, waiting := range map[string]int{"Produce": n.WaitingProduces, "Fetch": n.WaitingFetches, "DeleteRecords": n.WaitingDeletes} {
		s.With(metrics.Label{Name: "delayedOperation", Value: operation}).Set(&metrics.PurgatorySize, float64(waiting))
	}
	fetching := b.fetchers.Counts()
	replica := s.With(metrics.Label{Name: "clientId", Value: "Replica"})
	replica.Set(&metrics.MaxLag, float64(fetching.MaxLag))
	replica.Set(&metrics.FailedPartitions, float64(fetching.Failed))
	sessions, partitions := b.dispatcher.FetchSessions()
	s.Set(&metrics.FetchSessions, float64(sessions))
	s.Set(&metrics.SessionPartitions, float64(partitions))
	for _, p := range b.replicas.All() {
		measurePartition(s, p)
	}
}

func measurePartition(s *metrics.Scrape, p *partition.Partition) {
	log := p.Log()
	if log == nil {
		return // it is on its way in or out
	}
	tp, status := p.TP(), p.Status()
	at := s.With(metrics.Label{Name: "topic", Value: tp.Topic}, metrics.Label{Name: "partition", Value: strconv.Itoa(int(tp.Partition))})
	at.Set(&metrics.LogSize, float64(log.Size()))
	at.Set(&metrics.LogStartOffset, float64(log.StartOffset()))
	at.Set(&metrics.LogEndOffset, float64(log.EndOffset()))
	at.Set(&metrics.LogSegments, float64(log.Segments()))
	stable := log.LastStableOffset() // before the high watermark, which only goes on
	at.Set(&metrics.StableOffsetLag, float64(max(0, log.HighWatermark()-stable)))
	at.Set(&metrics.PartitionUnderReplicated, one(status.IsLeader && len(status.ISR) < len(status.Replicas)))
	at.Set(&metrics.PartitionUnderMinISR, one(status.UnderMinISR))
	at.Set(&metrics.PartitionAtMinISR, one(status.AtMinISR))
	inSync, replicas := 0, 0
	if status.IsLeader {
		inSync, replicas = len(status.ISR), len(status.Replicas)
	}
	at.Set(&metrics.PartitionInSync, float64(inSync))
	at.Set(&metrics.PartitionReplicas, float64(replicas))
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (b *Broker) measureTraffic(s *metrics.Scrape) {
	all, topics := b.replicas.Traffic()
	measureTraffic(s.With(), all)
	for topic, t := range topics {
		measureTraffic(s.With(metrics.Label{Name: "topic", Value: topic}), t)
	}
}

func measureTraffic(at metrics.Labelled, t partition.Traffic) {
	at.Set(&metrics.MessagesIn, float64(t.Messages))
	at.Set(&metrics.BytesIn, float64(t.BytesIn))
	at.Set(&metrics.BytesOut, float64(t.BytesOut))
	at.Set(&metrics.BytesRejected, float64(t.BytesRejected))
	at.Set(&metrics.ReplicationIn, float64(t.FollowersIn))
	at.Set(&metrics.ReplicationOut, float64(t.FollowersOut))
	at.Set(&metrics.ProduceRequests, float64(t.Produces))
	at.Set(&metrics.FailedProduces, float64(t.FailedProduces))
	at.Set(&metrics.FetchRequests, float64(t.Fetches))
	at.Set(&metrics.FailedFetches, float64(t.FailedFetches))
}

func (b *Broker) measureDirectories(s *metrics.Scrape) {
	uncleanable := map[string]int{}
	for _, l := range b.logs.All() {
		if l.CleanerError() != nil {
			uncleanable[l.ParentDir()]++
		}
	}
	offline := 0
	for _, d := range b.logs.Dirs() {
		at := s.With(metrics.Label{Name: "logDirectory", Value: d.Path})
		at.Set(&metrics.DirectoryOffline, one(d.Err != nil))
		at.Set(&metrics.UncleanablePartition, float64(uncleanable[d.Path]))
		if d.Err != nil {
			offline++
		}
	}
	s.Set(&metrics.OfflineDirectories, float64(offline))
	cleaner := b.logs.CleanerStats()
	s.Set(&metrics.Cleanings, float64(cleaner.Cleanings))
	s.Set(&metrics.CleanerBytesRead, float64(cleaner.BytesRead))
	s.Set(&metrics.CleanerBytesWritten, float64(cleaner.BytesWritten))
}

// measureGroups counts the groups of the partitions that answer in time; those of a coordinator that is stuck are
// left out of one scrape.
func (b *Broker) measureGroups(s *metrics.Scrape) {
	answer := make(chan []group.Listed, 1)
	b.groups.List(func(all []group.Listed, _ error) { answer <- all })
	late := time.NewTimer(groupsWait)
	defer late.Stop()
	select {
	case all := <-answer:
		n := map[group.State]int{}
		for _, g := range all {
			n[g.State]++
		}
		s.Set(&metrics.Groups, float64(len(all)))
		s.Set(&metrics.GroupsEmpty, float64(n[group.Empty]))
		s.Set(&metrics.GroupsPreparing, float64(n[group.PreparingRebalance]))
		s.Set(&metrics.GroupsCompletes, float64(n[group.CompletingRebalance]))
		s.Set(&metrics.GroupsStable, float64(n[group.Stable]))
		s.Set(&metrics.GroupsDead, float64(n[group.Dead]))
	case <-late.C:
	}
}

func measureArrivals(s *metrics.Scrape, rates quota.ArrivalRates) {
	s.Set(&metrics.BrokerAcceptRate, rates.Broker)
	for listener, r := range rates.Listeners {
		at := s.With(metrics.Label{Name: "listener", Value: listener})
		at.Set(&metrics.AcceptRate, r.PerSecond)
		if r.WaitMs > 0 { // Kafka has no number otherwise
			at.Set(&metrics.AcceptThrottle, r.WaitMs)
		}
		if r.TurnedAwayMs > 0 {
			at.Set(&metrics.AcceptThrottleOfIP, r.TurnedAwayMs)
		}
	}
	for from, perSecond := range rates.Addresses {
		s.With(metrics.Label{Name: "ip", Value: from.String()}).Set(&metrics.AcceptRate, perSecond)
	}
}

// quotaFamilies are what Kafka calls each kind, and its rate.
var quotaFamilies = map[quota.Kind]struct {
	resource string
	rate     *metrics.Family
}{
	quota.Produce: {"Produce", &metrics.QuotaByteRate}, quota.Fetch: {"Fetch", &metrics.QuotaByteRate},
	quota.Request: {"Request", &metrics.QuotaRequestTime}, quota.Mutation: {"ControllerMutation", &metrics.QuotaMutationRate},
}

func (b *Broker) measureQuotas(s *metrics.Scrape) {
	now := time.Now()
	for kind, family := range quotaFamilies {
		for _, r := range b.live.quotas.held.Rates(kind, now) {
			labels := []metrics.Label{{Name: "resource", Value: family.resource}}
			if r.Client.User != "" {
				labels = append(labels, metrics.Label{Name: "user", Value: r.Client.User})
			}
			if r.Client.ID != "" {
				labels = append(labels, metrics.Label{Name: "clientId", Value: strings.ToValidUTF8(r.Client.ID, "?")}) // clients send what they like
			}
			at := s.With(labels...)
			at.Set(family.rate, r.PerSecond)
			if kind == quota.Mutation {
				at.Set(&metrics.QuotaTokens, r.Tokens)
			}
			if r.PauseMs > 0 { // Kafka has no number otherwise
				at.Set(&metrics.QuotaThrottleTime, r.PauseMs)
			}
		}
	}
	if b.live.quotas.held.Any(quota.Request) {
		s.Set(&metrics.ExemptRequestTime, b.live.quotas.held.ExemptRate(now))
	}
}

// measuredAPIs is the table of APIs with the names as Kafka spells them.
func measuredAPIs() []metrics.API {
	kafkas := strings.NewReplacer("ISR", "Isr", "SASL", "Sasl", "SCRAM", "Scram", "ACL", "Acl", "ID", "Id")
	apis := make([]metrics.API, len(wire.APIs))
	for i, a := range wire.APIs {
		apis[i] = metrics.API{Key: a.Key, MaxVersion: a.Max, Name: kafkas.Replace(a.Name)}
	}
	return apis
}
