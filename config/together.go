package config

import (
	"fmt"
	"slices"
)

// checkTogether holds the rules that no single key's row can state. Each error names a key.
func (v *Values) checkTogether() error {
	invalid := func(name, reason string) error {
		return &InvalidError{Name: name, Value: v.String(name), Reason: reason}
	}
	if v.String("process.roles") != "" {
		return invalid("process.roles", "this broker runs in ZooKeeper mode, where it must be empty")
	}
	if id, reserved := v.Int("broker.id"), v.Int("reserved.broker.max.id"); v.Bool("broker.id.generation.enable") {
		if id < -1 || id > reserved {
			return invalid("broker.id", fmt.Sprintf("must be -1, or at least 0 and at most reserved.broker.max.id (%d)", reserved))
		}
	} else if id < 0 {
		return invalid("broker.id", "must be at least 0 when broker.id.generation.enable is false")
	}
	if v.Int("node.id") != v.Int("broker.id") {
		return invalid("node.id", fmt.Sprintf("must be the same as broker.id (%d)", v.Int("broker.id")))
	}
	if v.ProtocolVersion("inter.broker.protocol.version") < V2_4IV1 {
		return invalid("inter.broker.protocol.version", "Barnabas speaks 2.4 and later between brokers")
	}
	if v.Int("log.cleaner.threads") < 1 {
		return invalid("log.cleaner.threads", "must be at least 1; log.cleaner.enable=false leaves the cleaner out")
	}
	if err := v.checkRequirements(); err != nil {
		return err
	}
	if n := v.Int("offsets.commit.required.acks"); n < -1 || n > v.Int("offsets.topic.replication.factor") {
		return invalid("offsets.commit.required.acks", "must be at least -1 and at most offsets.topic.replication.factor")
	}
	if n := v.Int("offsets.topic.compression.codec"); n < 0 || n > 4 {
		return invalid("offsets.topic.compression.codec", "must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)")
	}
	if err := v.checkConnections(); err != nil {
		return err
	}
	if err := v.checkPasswords(); err != nil {
		return err
	}
	if err := v.checkAuthorizer(); err != nil {
		return err
	}
	return v.checkListeners()
}

// requirement is a rule between keys, with what Kafka says when it is broken.
type requirement struct {
	holds bool
	text  string
}

// checkRequirements holds the rules that Kafka states in the same words when it starts and when a dynamic setting would break them.
func (v *Values) checkRequirements() error {
	asTopic := func(name string) int64 { // what the synonyms give together
		text, _ := v.TopicDefault(name)
		return wholeNumber(text)
	}
	idle, failed := v.Int("connections.max.idle.ms"), v.Int("connection.failed.authentication.delay.ms")
	retention, queued := asTopic("retention.ms"), v.Int("queued.max.request.bytes")
	for _, r := range []requirement{
		{asTopic("segment.ms") >= 1, "log.roll.ms must be greater than or equal to 1"},
		{asTopic("segment.jitter.ms") >= 0, "log.roll.jitter.ms must be greater than or equal to 0"},
		{retention != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"},
		{len(v.LogDirs()) > 0, "At least one log directory must be defined via log.dirs or log.dir."},
		{v.Int("log.cleaner.dedupe.buffer.size")/v.Int("log.cleaner.threads") > 1<<20, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
		{v.Int("replica.fetch.wait.max.ms") <= v.Int("replica.socket.timeout.ms"), "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket timeouts"},
		{v.Int("replica.fetch.wait.max.ms") <= v.Int("replica.lag.time.max.ms"), "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent changes in ISR"},
		{queued <= 0 || queued >= v.Int("socket.request.max.bytes"), "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"},
		{idle < 0 || failed < idle, fmt.Sprintf("connection.failed.authentication.delay.ms=%d should always be less than connections.max.idle.ms=%d to prevent failed authentication responses from timing out", failed, idle)},
	} {
		if !r.holds {
			return &ContradictionError{r.text}
		}
	}
	return nil
}

func (v *Values) checkListeners() error {
	listeners, err := v.Listeners()
	if err != nil {
		return err
	}
	advertised, err := v.AdvertisedListeners()
	if err != nil {
		return err
	}
	invalid := func(name, reason string) error {
		return &InvalidError{Name: name, Value: v.String(name), Reason: reason}
	}
	if len(advertised) == 0 {
		return &ContradictionError{"There must be at least one broker advertised listener."}
	}
	if _, both := v.Lookup("security.inter.broker.protocol"); both && v.String("inter.broker.listener.name") != "" {
		return invalid("inter.broker.listener.name", "only one of inter.broker.listener.name and security.inter.broker.protocol may be set")
	}
	if err := v.checkSecurity(listeners); err != nil {
		return err
	}
	for _, l := range advertised {
		if l.Host == "0.0.0.0" {
			return invalid("advertised.listeners", "0.0.0.0 is not an address that clients can connect to; give advertised.listeners a routable one")
		}
		if !slices.ContainsFunc(listeners, func(o Listener) bool { return o.Name == l.Name }) {
			return invalid("advertised.listeners", fmt.Sprintf("listener %s is not among listeners", l.Name))
		}
	}
	if v.String("control.plane.listener.name") != "" {
		name := v.ControlListener()
		switch {
		case !slices.ContainsFunc(advertised, func(l Listener) bool { return l.Name == name }):
			return invalid("control.plane.listener.name", "it is not among advertised.listeners")
		case name == v.InterBrokerListener():
			return invalid("control.plane.listener.name", "it is the listener between brokers already: leave it out, or give the control plane a listener of its own")
		}
	}
	if name := v.InterBrokerListener(); !slices.ContainsFunc(advertised, func(l Listener) bool { return l.Name == name }) {
		return invalid("inter.broker.listener.name", fmt.Sprintf("the listener between brokers, %s, is not among advertised.listeners", name))
	}
	return nil
}
