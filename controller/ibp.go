package controller

import (
	"fmt"
	"strconv"
	"strings"
)

// IBP is an inter.broker.protocol.version: the release whose requests the controller speaks to every broker.
type IBP struct {
	Major, Minor int
	// Revision is the internal version within the release ("2.7-IV2" has revision 2).
	Revision int
}

// latestRevision stands for the last internal version of a release, which is what "2.8" without "-IV" means.
const latestRevision = 99

// ParseIBP reads "2.8", "2.8-IV1" or "2.8.2" (a third number carries no meaning, as in Kafka's configuration).
func ParseIBP(s string) (IBP, error) {
	release, revision, hasRevision := strings.Cut(s, "-IV")
	v := IBP{Revision: latestRevision}
	numbers := strings.Split(release, ".")
	if len(numbers) < 2 {
		return IBP{}, fmt.Errorf("inter.broker.protocol.version %q is not of the form 2.8 or 2.8-IV1", s)
	}
	var err error
	if v.Major, err = strconv.Atoi(numbers[0]); err == nil {
		v.Minor, err = strconv.Atoi(numbers[1])
	}
	if err == nil && hasRevision {
		v.Revision, err = strconv.Atoi(revision)
	}
	if err != nil {
		return IBP{}, fmt.Errorf("inter.broker.protocol.version %q is not of the form 2.8 or 2.8-IV1", s)
	}
	if !v.AtLeast(2, 4, 0) {
		return IBP{}, fmt.Errorf("inter.broker.protocol.version %q is older than 2.4, the oldest supported", s)
	}
	return v, nil
}

// String gives the version as Kafka writes it.
func (v IBP) String() string {
	if v.Revision == latestRevision {
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return fmt.Sprintf("%d.%d-IV%d", v.Major, v.Minor, v.Revision)
}

// AtLeast tells whether v is the given internal version or a later one.
func (v IBP) AtLeast(major, minor, revision int) bool {
	if v.Major != major {
		return v.Major > major
	}
	if v.Minor != minor {
		return v.Minor > minor
	}
	return v.Revision >= revision
}

// Which request version each release brought (KIP-455, KIP-516, KIP-570, KIP-704, KIP-866 and flexible versions).

// since is the first internal version that speaks a request version.
type since struct {
	major, minor, revision int
	version                int16
}

var (
	leaderAndISRVersions   = []since{{3, 4, 0, 7}, {3, 2, 0, 6}, {2, 8, 1, 5}, {2, 4, 1, 4}, {2, 4, 0, 3}}
	updateMetadataVersions = []since{{3, 4, 0, 8}, {2, 8, 1, 7}, {2, 4, 1, 6}, {2, 4, 0, 5}}
	// StopReplica stays at 3, where Kafka goes on to 4 with 3.4. Version 4 only adds whether the controller is a KRaft
	// one, which this one never is, and kmsg 1.15 writes that field behind the controller epoch instead of before it, so that a
	// Kafka broker would read another epoch and refuse this controller from then on.
	stopReplicaVersions = []since{{2, 6, 0, 3}, {2, 4, 1, 2}, {2, 4, 0, 1}}
)

// speaks picks the version of a request from its table, newest first.
func (v IBP) speaks(versions []since) int16 {
	for _, s := range versions {
		if v.AtLeast(s.major, s.minor, s.revision) {
			return s.version
		}
	}
	return versions[len(versions)-1].version
}

// alterPartition tells whether leaders change the ISR by asking the controller (KIP-497) instead of writing
// ZooKeeper themselves.
func (v IBP) alterPartition() bool { return v.AtLeast(2, 7, 2) }

// topicIDs tells whether the controller gives an id to a topic that has none (KIP-516).
func (v IBP) topicIDs() bool { return v.AtLeast(2, 8, 0) }

// leaderRecovery tells whether an unclean leader is marked as recovering (KIP-704).
func (v IBP) leaderRecovery() bool { return v.AtLeast(3, 2, 0) }

// featureVersioning tells whether the feature node is enabled (KIP-584).
func (v IBP) featureVersioning() bool { return v.AtLeast(2, 7, 0) }
