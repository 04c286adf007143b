package main

import (
	"fmt"

	"barnabas/broker/metrics"
)

// serveMetrics shows broker and controller at an address; an empty one means nowhere.
func (n *node) serveMetrics(address string) error {
	if address == "" {
		return nil
	}
	r := metrics.New()
	r.Add(n.broker.Measure)
	r.Add(n.measureController)
	var err error
	if n.metrics, err = metrics.Serve(address, r, n.log.WithField("part", "metrics")); err != nil {
		return fmt.Errorf("barnabas.metrics.listener %s: %w", address, err)
	}
	n.log.Infof("metrics are served at http://%s/metrics", n.metrics.Addr())
	return nil
}

func (n *node) measureController(s *metrics.Scrape) {
	stats := n.controller.Stats()
	active := 0.0
	if n.controller.IsActive() {
		active = 1
	}
	s.Set(&metrics.ActiveController, active)
	s.Set(&metrics.ActiveBrokers, float64(stats.Counts.Brokers))
	s.Set(&metrics.GlobalTopics, float64(stats.Counts.Topics))
	s.Set(&metrics.GlobalPartitions, float64(stats.Counts.Partitions))
	s.Set(&metrics.OfflinePartitions, float64(stats.Counts.Offline))
	s.Set(&metrics.PreferredImbalance, float64(stats.Counts.Imbalanced))
	s.Set(&metrics.TopicsToDelete, float64(stats.Counts.TopicsToDelete))
	s.Set(&metrics.TopicsHalted, float64(stats.Counts.TopicsHalted))
	s.Set(&metrics.ReplicasToDelete, float64(stats.Counts.ReplicasToDelete))
	s.Set(&metrics.ReplicasHalted, float64(stats.Counts.ReplicasHalted))
	s.Set(&metrics.ControllerQueue, float64(stats.Queued))
	s.Set(&metrics.ControllerBusyTotal, stats.Busy.Seconds())
}
