package broker

import (
	"strconv"
	"time"
)

// Rates of replication (KIP-73) and of moves between log directories, dynamic settings of a broker that no file may have.
const (
	leaderRate   = "leader.replication.throttled.rate"
	followerRate = "follower.replication.throttled.rate"
	moveRate     = "replica.alter.log.dirs.io.max.bytes.per.second" // KIP-113
)

// setThrottles puts the rates that stand in ZooKeeper in force; without one replication is not limited.
func (b *Broker) setThrottles() {
	now := time.Now()
	b.replicas.LeaderThrottle.SetRate(now, b.live.rate(leaderRate))
	b.followerThrottle.SetRate(now, b.live.rate(followerRate))
	b.moveThrottle.SetRate(now, b.live.rate(moveRate))
}

// rate is a dynamic setting in bytes per second: this broker's own, else the default of all brokers, else 0.
func (l *liveConfig) rate(name string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	value, set := l.mu.own[name]
	if !set {
		value = l.mu.all[name]
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
