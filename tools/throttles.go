package tools

// The settings with which replication is held back while partitions move (KIP-73, KIP-113).
const (
	leaderThrottleRate       = "leader.replication.throttled.rate"
	followerThrottleRate     = "follower.replication.throttled.rate"
	logDirThrottleRate       = "replica.alter.log.dirs.io.max.bytes.per.second"
	leaderThrottleReplicas   = "leader.replication.throttled.replicas"
	followerThrottleReplicas = "follower.replication.throttled.replicas"
)
