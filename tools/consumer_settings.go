package tools

import (
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	startOffsets    = []named[kgo.Offset]{{"latest", kgo.NewOffset().AtEnd()}, {"earliest", kgo.NewOffset().AtStart()}, {"none", kgo.NoResetOffset()}}
	isolationLevels = []named[kgo.IsolationLevel]{{"read_committed", kgo.ReadCommitted()}, {"read_uncommitted", kgo.ReadUncommitted()}}
	truths          = []named[bool]{{"true", true}, {"false", false}}
	assignors       = map[string]func() kgo.GroupBalancer{"RangeAssignor": kgo.RangeBalancer, "RoundRobinAssignor": kgo.RoundRobinBalancer, "StickyAssignor": kgo.StickyBalancer, "CooperativeStickyAssignor": kgo.CooperativeStickyBalancer}
)

// consumerOptions turns the settings of a Java consumer into those of ours. Where group.id is set it joins that group; only what is marked is committed then, so that the next member goes on
// behind what was dealt with, not behind what was fetched.
func consumerOptions(settings map[string]string) ([]kgo.Opt, error) {
	const (
		largest      = 1 << 30
		shortestWait = 10 * time.Millisecond  // that the client takes; what is there is answered at once anyway
		shortestAge  = 100 * time.Millisecond // likewise
		longestAge   = time.Hour
	)
	s := &clientSettings{of: settings}
	bytes := func(name string, def int64) int32 { return int32(min(s.number(name, def), largest)) }
	perPartition := bytes("max.partition.fetch.bytes", 1<<20)
	opts := []kgo.Opt{
		kgo.ConsumeResetOffset(choice(s, "auto.offset.reset", "latest", startOffsets)),
		kgo.FetchIsolationLevel(choice(s, "isolation.level", "read_uncommitted", isolationLevels)),
		kgo.FetchMaxWait(max(s.millis("fetch.max.wait.ms", 500), shortestWait)),
		kgo.FetchMinBytes(bytes("fetch.min.bytes", 1)),
		kgo.FetchMaxBytes(max(bytes("fetch.max.bytes", 50<<20), perPartition)),
		kgo.FetchMaxPartitionBytes(perPartition),
		kgo.Rack(settings["client.rack"]),
		kgo.MetadataMaxAge(min(max(s.millis("metadata.max.age.ms", 300_000), shortestAge), longestAge)),
	}
	if settings["auto.offset.reset"] == "none" && settings["group.id"] != "" {
		opts = append(opts, kgo.ConsumeStartOffset(kgo.NewOffset().AtCommitted()))
	}
	if choice(s, "allow.auto.create.topics", "true", truths) {
		opts = append(opts, kgo.AllowAutoTopicCreation())
	}
	if !choice(s, "check.crcs", "true", truths) {
		opts = append(opts, kgo.DisableFetchCRCValidation())
	}
	if settings["group.id"] != "" {
		opts = append(opts, groupOptions(s)...)
	}
	return opts, s.fault
}

// consumedTopics makes a consumer read the topics whose whole names match a regular expression of one of the originals' options: commas in it are alternatives, blanks and the quotes around it
// count for nothing.
func consumedTopics(text string) ([]kgo.Opt, error) {
	pattern := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(text), ",", "|"), " ", ""), `"'`)
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, &badArgument{pattern + " is an invalid regex."}
	}
	return []kgo.Opt{kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:" + pattern + ")$")}, nil
}

// recordsPerPoll is how many records a Java consumer hands out at a time.
func recordsPerPoll(settings map[string]string) (int, error) {
	const most = 1 << 20
	s := &clientSettings{of: settings}
	return int(min(max(s.number("max.poll.records", 500), 1), most)), s.fault
}

func groupOptions(s *clientSettings) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(s.of["group.id"]),
		kgo.SessionTimeout(s.millis("session.timeout.ms", 45_000)),
		kgo.HeartbeatInterval(s.millis("heartbeat.interval.ms", 3000)),
		kgo.RebalanceTimeout(s.millis("max.poll.interval.ms", 300_000)),
		kgo.Balancers(balancers(s)...),
	}
	if id := s.of["group.instance.id"]; id != "" {
		opts = append(opts, kgo.InstanceID(id))
	}
	if choice(s, "enable.auto.commit", "true", truths) {
		opts = append(opts, kgo.AutoCommitMarks(), kgo.AutoCommitInterval(s.millis("auto.commit.interval.ms", 5000)))
	} else {
		opts = append(opts, kgo.DisableAutoCommit())
	}
	return opts
}

// balancers are the ways of dividing partitions that a member offers, which are named by Java classes. The default lets a group of Java consumers with their own defaults take it in.
func balancers(s *clientSettings) []kgo.GroupBalancer {
	text := s.of["partition.assignment.strategy"]
	if text == "" {
		text = "RangeAssignor,CooperativeStickyAssignor"
	}
	var offered []kgo.GroupBalancer
	for _, class := range strings.Split(text, ",") {
		class = strings.TrimSpace(class)
		assignor := assignors[class[strings.LastIndexByte(class, '.')+1:]]
		if assignor == nil {
			s.fault = &badArgument{"the assignor " + class + " is not known here"}
			continue
		}
		offered = append(offered, assignor())
	}
	return offered
}
