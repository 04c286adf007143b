package fetcher

import (
	"fmt"
	"strconv"
	"strings"
)

// versions is what an inter.broker.protocol.version decides about fetching. A
// follower does not negotiate: the setting says what every broker of the cluster
// understands.
type versions struct {
	fetch       int16
	listOffsets int16
	epochs      int16 // OffsetForLeaderEpoch
	epochLookup bool  // 0.11.0-IV2: leaders answer it
	cutByFetch  bool  // 2.7-IV1: fetches carry the last epoch, answers where logs part (KIP-595)
}

// ibp is an inter.broker.protocol.version: release and the step within it.
type ibp struct{ major, minor, step int }

// latestStep stands for the newest step of a release, which the bare release
// number means.
const latestStep = 99

// parseIBP reads "3.9", "2.7-IV1" or "0.11.0-IV2". Before 1.0 releases had one
// number more.
func parseIBP(s string) (ibp, error) {
	release, stepName, hasStep := strings.Cut(s, "-IV")
	v := ibp{step: latestStep}
	if hasStep {
		n, err := strconv.Atoi(stepName)
		if err != nil || n < 0 {
			return ibp{}, fmt.Errorf("inter.broker.protocol.version %q: no such step", s)
		}
		v.step = n
	}
	var numbers []int
	for _, part := range strings.Split(release, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return ibp{}, fmt.Errorf("inter.broker.protocol.version %q: not a version", s)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) > 1 && numbers[0] == 0 {
		numbers = numbers[1:] // 0.11.0: major 11 of the days before 1.0, told apart below
		if len(numbers) < 2 {
			numbers = append(numbers, 0)
		}
		v.major, v.minor = numbers[0]-100, numbers[1]
		return v, nil
	}
	if len(numbers) < 2 {
		return ibp{}, fmt.Errorf("inter.broker.protocol.version %q: not a version", s)
	}
	v.major, v.minor = numbers[0], numbers[1]
	return v, nil
}

func (v ibp) atLeast(major, minor, step int) bool {
	if v.major != major {
		return v.major > major
	}
	if v.minor != minor {
		return v.minor > minor
	}
	return v.step >= step
}

// before1 makes the number of a 0.x release comparable with later ones.
func before1(x int) int { return x - 100 }

// since is the first inter-broker protocol at which a request version is used.
type since struct {
	major, minor, step int
	version            int16
}

func pick(v ibp, table []since) int16 {
	for _, s := range table {
		if v.atLeast(s.major, s.minor, s.step) {
			return s.version
		}
	}
	return 0
}

// The tables are Kafka's MetadataVersion, newest first.
var (
	fetchSince = []since{
		{3, 9, 0, 17}, {3, 7, 4, 16}, {3, 5, 1, 15}, {3, 5, 0, 14}, {3, 1, 0, 13}, {2, 7, 1, 12}, {2, 3, 1, 11}, {2, 1, 2, 10},
		{2, 0, 1, 8}, {1, 1, 0, 7}, {before1(11), 0, 1, 5}, {before1(11), 0, 0, 4}, {before1(10), 1, 1, 3}, {before1(10), 0, 0, 2},
	}
	listOffsetsSince = []since{
		{3, 9, 0, 9}, {3, 5, 0, 8}, {3, 0, 1, 7}, {2, 8, 0, 6}, {2, 2, 1, 5}, {2, 1, 1, 4}, {2, 0, 1, 3}, {before1(11), 0, 0, 2},
		{before1(10), 1, 2, 1},
	}
	epochsSince = []since{{2, 8, 0, 4}, {2, 3, 1, 3}, {2, 1, 1, 2}, {2, 0, 0, 1}}
)

// versionsFor returns what a protocol version decides.
func versionsFor(protocol string) (versions, error) {
	v, err := parseIBP(protocol)
	if err != nil {
		return versions{}, err
	}
	return versions{
		fetch:       pick(v, fetchSince),
		listOffsets: pick(v, listOffsetsSince),
		epochs:      pick(v, epochsSince),
		epochLookup: v.atLeast(before1(11), 0, 2),
		cutByFetch:  v.atLeast(2, 7, 1),
	}, nil
}
