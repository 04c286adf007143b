package api

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin"
)

// autoCreations are the topics that are being created because somebody asked
// for their metadata. A crowd of clients that meets a new name at once makes
// one attempt, not many.
type autoCreations struct {
	mu struct {
		sync.Mutex
		names map[string]struct{}
	}
}

func newAutoCreations() *autoCreations {
	a := &autoCreations{}
	a.mu.names = make(map[string]struct{})
	return a
}

func (a *autoCreations) begin(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, running := a.mu.names[name]; running {
		return false
	}
	a.mu.names[name] = struct{}{}
	return true
}

func (a *autoCreations) end(specs []admin.TopicSpec) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range specs {
		delete(a.mu.names, specs[i].Name)
	}
}

// autoCreated is what a client is told of a name that it asked for.
type autoCreated struct {
	name string
	err  error
}

// autoCreate creates topics with the broker's defaults. As in Kafka's ZooKeeper
// mode any broker does so, controller or not, and does not wait for leaders:
// the client is told LEADER_NOT_AVAILABLE and asks again.
// What that costs of the client's limit it pays when it next creates something.
func (d *Dispatcher) autoCreate(ctx context.Context, c *call, names []string) []autoCreated {
	told := make([]autoCreated, 0, len(names))
	var specs []admin.TopicSpec
	for _, name := range names {
		switch {
		case !validTopicName(name):
			told = append(told, autoCreated{name, kerr.InvalidTopicException})
		case !d.creating.begin(name):
			told = append(told, autoCreated{name, kerr.UnknownTopicOrPartition})
		default:
			spec := d.autoSpec(name)
			spec.Permit = c.lenient().permit
			specs = append(specs, spec)
		}
	}
	if len(specs) == 0 {
		return told
	}
	defer d.creating.end(specs)
	for _, r := range d.deps.Admin.CreateTopics(ctx, specs, false) {
		if r.Err == nil || errors.Is(r.Err, kerr.TopicAlreadyExists) {
			r.Err = kerr.LeaderNotAvailable
		}
		told = append(told, autoCreated{r.Name, r.Err})
	}
	return told
}

func (d *Dispatcher) autoSpec(name string) admin.TopicSpec {
	spec := admin.TopicSpec{Name: name, Partitions: -1, ReplicationFactor: -1}
	if d.cfg.AutoTopic == nil {
		return spec
	}
	t := d.cfg.AutoTopic(name)
	spec.Partitions, spec.ReplicationFactor = t.Partitions, t.ReplicationFactor
	for _, key := range slices.Sorted(maps.Keys(t.Configs)) {
		value := t.Configs[key]
		spec.Configs = append(spec.Configs, admin.ConfigEntry{Name: key, Value: &value})
	}
	return spec
}
