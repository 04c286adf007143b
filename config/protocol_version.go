package config

import (
	"fmt"
	"slices"
	"strings"
)

// ProtocolVersion is a value of inter.broker.protocol.version. Later versions compare greater.
type ProtocolVersion int

// Versions at which the protocol between brokers changes in ways that Barnabas acts on.
var (
	V0_10_0IV0 = mustProtocolVersion("0.10.0-IV0") // messages have timestamps: format v1 (KIP-32)
	V0_11_0IV0 = mustProtocolVersion("0.11.0-IV0") // batches: format v2 (KIP-98)

	V2_4IV1 = mustProtocolVersion("2.4-IV1") // the oldest that Barnabas speaks
	V2_6IV0 = mustProtocolVersion("2.6-IV0") // StopReplica carries leader epochs (KIP-570)
	V2_7IV0 = mustProtocolVersion("2.7-IV0") // feature versioning znode (KIP-584)
	V2_7IV1 = mustProtocolVersion("2.7-IV1") // followers truncate by the answer of a fetch (KIP-595)
	V2_7IV2 = mustProtocolVersion("2.7-IV2") // AlterPartition instead of ISR writes to ZooKeeper (KIP-497)
	V2_8IV0 = mustProtocolVersion("2.8-IV0") // topic ids (KIP-516)
	V2_8IV1 = mustProtocolVersion("2.8-IV1") // topic ids in ZooKeeper
	V3_0IV0 = mustProtocolVersion("3.0-IV0") // producer ids allocated by the controller (KIP-730)
	V3_0IV1 = mustProtocolVersion("3.0-IV1") // batches of format v2 only (KIP-724)
	V3_1IV0 = mustProtocolVersion("3.1-IV0") // topic ids in fetches (KIP-516)
	V3_2IV0 = mustProtocolVersion("3.2-IV0") // leader recovery state (KIP-704)
	V3_3IV0 = mustProtocolVersion("3.3-IV0") // delegation tokens name who asked for them (KIP-373)
	V3_5IV1 = mustProtocolVersion("3.5-IV1") // replica state in fetches (KIP-903)
	V3_9IV0 = mustProtocolVersion("3.9-IV0") // the newest, and the default
)

var protocolVersions = strings.Fields(`0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV0 0.10.0-IV1 0.10.1-IV0 0.10.1-IV1 0.10.1-IV2 0.10.2-IV0 0.11.0-IV0 0.11.0-IV1 0.11.0-IV2
1.0-IV0 1.1-IV0 2.0-IV0 2.0-IV1 2.1-IV0 2.1-IV1 2.1-IV2 2.2-IV0 2.2-IV1 2.3-IV0 2.3-IV1 2.4-IV0 2.4-IV1 2.5-IV0 2.6-IV0 2.7-IV0 2.7-IV1 2.7-IV2 2.8-IV0 2.8-IV1
3.0-IV0 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1`)

// String returns the version's full name, such as 3.9-IV0.
func (v ProtocolVersion) String() string { return protocolVersions[v] }

// ParseProtocolVersion reads a version's name: a full one (2.7-IV2), or a release's (2.7, 2.7.1), which means its last step.
func ParseProtocolVersion(name string) (ProtocolVersion, error) {
	if i := slices.Index(protocolVersions, name); i >= 0 {
		return ProtocolVersion(i), nil
	}
	parts := strings.Split(name, ".")
	keep := 2
	if parts[0] == "0" {
		keep = 3
	}
	if len(parts) > keep {
		parts = parts[:keep]
	}
	release := strings.Join(parts, ".")
	for i := len(protocolVersions) - 1; i >= 0; i-- {
		if known := protocolVersions[i]; known == release || strings.HasPrefix(known, release+"-") {
			return ProtocolVersion(i), nil
		}
	}
	return 0, noVersion(name)
}

func noVersion(name string) error { return fmt.Errorf("Version %s is not a valid version", name) }

func mustProtocolVersion(name string) ProtocolVersion {
	v, err := ParseProtocolVersion(name)
	if err != nil {
		panic(err)
	}
	return v
}
