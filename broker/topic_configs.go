package broker

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"

	"barnabas/broker/commitlog"
	"barnabas/broker/quota"
	"barnabas/config"
	"barnabas/config/secret"
	"barnabas/zkstate"
)

// liveConfig is the configuration that may change while the broker runs: topics' own settings, and the dynamic settings of brokers (KIP-226), as they stand in ZooKeeper.
//
// A notification below /config/changes only says which entity to read again. Whoever missed one (at start, after a new session) reads everything, so the level in ZooKeeper and
// not the edge decides.
type liveConfig struct {
	zk        *zkstate.Client
	brokerID  string
	log       *logrus.Entry
	apply     func(topic string, c commitlog.Config) // tells the logs of a topic
	changed   func(topic string, c commitlog.Config) // told of a topic whose own settings changed just now
	broker    func(v *config.Values)                 // told of the broker's settings
	quotas    *clientQuotas
	addresses *addressQuotas
	users     *credentials    // told of users' settings; nil: nobody asks
	notified  *changes        // read by who follows
	passwords *secret.Encoder // nil: there is no secret, and passwords cannot be read

	mu struct {
		sync.Mutex
		static   *config.Values
		values   *config.Values       // static under the two dynamic layers
		all, own zkstate.EntityConfig // passwords in the clear
		topics   map[string]zkstate.EntityConfig
	}
}

func newLiveConfig(zk *zkstate.Client, static *config.Values, brokerID string, log *logrus.Entry) *liveConfig {
	l := &liveConfig{zk: zk, brokerID: brokerID, log: log, passwords: static.PasswordEncoder("password.encoder.secret"), quotas: newClientQuotas(zk, static, log), notified: newChanges(zk, zkstate.ConfigChangesPath)}
	l.addresses = newAddressQuotas(zk, quota.NewArrivals(quotaWindows(static, "")), log)
	l.mu.static, l.mu.values = static, static
	l.mu.topics = map[string]zkstate.EntityConfig{}
	return l
}

// load reads all settings side by side, those of one kind in pipelined batches.
func (l *liveConfig) load(ctx context.Context) error {
	var reading sync.WaitGroup
	var topics, brokers, clients, addresses error
	reading.Go(func() { topics = l.loadTopics(ctx) })
	reading.Go(func() { brokers = l.loadBrokers(ctx) })
	reading.Go(func() { clients = l.quotas.load(ctx) })
	reading.Go(func() { addresses = l.addresses.load(ctx) })
	reading.Wait()
	return errors.Join(topics, brokers, clients, addresses)
}

// loadTopics reads every topic's settings.
func (l *liveConfig) loadTopics(ctx context.Context) error {
	listed, err := l.zk.One(ctx, zkstate.Children(zkstate.EntityTypePath(zkstate.TopicEntity)))
	if err != nil {
		return err
	}
	ops := make([]zkstate.Op, 0, len(listed.Children))
	for _, topic := range listed.Children {
		ops = append(ops, zkstate.Get(zkstate.EntityPath(zkstate.TopicEntity, topic)))
	}
	results, err := l.zk.Do(ctx, ops)
	if err != nil {
		return err
	}
	topics := map[string]zkstate.EntityConfig{}
	for i, r := range results {
		if r.Err != nil {
			continue // deleted since it was listed
		}
		c, err := zkstate.DecodeEntityConfig(r.Data)
		if err != nil {
			l.log.WithError(err).Warnf("the settings of topic %s cannot be read; its defaults hold", listed.Children[i])
			continue
		}
		topics[listed.Children[i]] = c
	}
	l.mu.Lock()
	l.mu.topics = topics
	l.mu.Unlock()
	return nil
}

// loadBrokers reads the settings of this broker and of all.
func (l *liveConfig) loadBrokers(ctx context.Context) error {
	all, _, err := l.zk.EntityConfig(ctx, zkstate.BrokerEntity, zkstate.DefaultEntity)
	if err != nil {
		return err
	}
	own, _, err := l.zk.EntityConfig(ctx, zkstate.BrokerEntity, l.brokerID)
	if err != nil {
		return err
	}
	all, own = l.readable(all), l.readable(own)
	l.mu.Lock()
	l.mu.all, l.mu.own = all, own
	l.layerLocked()
	l.mu.Unlock()
	return nil
}

// layerLocked puts in force what is known.
func (l *liveConfig) layerLocked() {
	v, err := layered(l.mu.static, l.mu.all, l.mu.own)
	if err != nil {
		l.log.WithError(err).Error("dynamic settings contradict each other or the file; none of them holds")
		v = l.mu.static
	}
	l.mu.values = v
}

// layered puts the dynamic settings over the file's. Settings that the table refuses are left out: a broker must come up whatever stands in ZooKeeper.
func layered(static *config.Values, all, own zkstate.EntityConfig) (*config.Values, error) {
	set := map[string]string{}
	for _, name := range static.Names() {
		set[name], _ = static.Lookup(name)
	}
	for _, layer := range []zkstate.EntityConfig{all, own} {
		for name, value := range layer {
			if k := config.LookupBroker(name); k != nil && k.Update != config.ReadOnly && k.Check(value) == nil {
				set[name] = value
			}
		}
	}
	return config.New(set)
}

// forTopic is the configuration of a topic's logs. A topic that is not known yet is read from ZooKeeper, since its creation sends no notification.
func (l *liveConfig) forTopic(topic string) commitlog.Config {
	l.mu.Lock()
	own, known := l.mu.topics[topic]
	values := l.mu.values
	l.mu.Unlock()
	if !known {
		ctx, cancel := context.WithTimeout(context.Background(), zkReadTimeout)
		defer cancel()
		c, _, err := l.zk.EntityConfig(ctx, zkstate.TopicEntity, topic)
		if err != nil {
			l.log.WithError(err).Warnf("the settings of topic %s cannot be read now; its defaults hold until they can", topic)
			return logConfig(values, nil)
		}
		l.mu.Lock()
		l.mu.topics[topic] = c
		l.mu.Unlock()
		own = c
	}
	return logConfig(values, own)
}

// forget drops what is known of a topic that has no log here any more: another of the same name may follow.
func (l *liveConfig) forget(topic string) {
	l.mu.Lock()
	delete(l.mu.topics, topic)
	l.mu.Unlock()
}

// values is the broker's configuration now.
func (l *liveConfig) values() *config.Values {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.values
}

// follow handles notifications until ctx ends. events must hold watch events of the client; it reads the notifications again at each event that can concern them.
func (l *liveConfig) follow(ctx context.Context, events <-chan zkstate.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-events:
			if !open {
				return
			}
			var err error
			switch {
			case e.Kind == zkstate.SessionStarted:
				if err = l.load(ctx); err == nil && l.users != nil {
					err = l.users.load(ctx)
				}
				if err == nil {
					l.applyAll()
					err = l.catchUp(ctx)
				}
			case e.Kind == zkstate.NodeChildrenChanged && e.Path == zkstate.ConfigChangesPath:
				err = l.catchUp(ctx)
			}
			if err != nil && ctx.Err() == nil {
				l.log.WithError(err).Warn("following configuration changes; a new session will read them again")
			}
		}
	}
}

// catchUp reads again what notifications tell of that came since the last time, leaving the next watch.
func (l *liveConfig) catchUp(ctx context.Context) error {
	news, err := l.notified.unseen(ctx)
	if err != nil {
		return err
	}
	var failures []error
	seen := map[zkstate.ConfigChange]bool{}
	for _, data := range news {
		change, err := zkstate.DecodeConfigChange(data)
		if err != nil {
			l.log.WithError(err).Warnf("a configuration change cannot be read and is ignored: %q", data)
			continue
		}
		if !seen[change] {
			seen[change] = true
			failures = append(failures, l.reread(ctx, change))
		}
	}
	return errors.Join(failures...)
}

func (l *liveConfig) reread(ctx context.Context, change zkstate.ConfigChange) error {
	c, _, err := l.zk.EntityConfig(ctx, change.Type, change.Name)
	if err != nil {
		return err
	}
	switch {
	case change.Type == zkstate.TopicEntity && !strings.Contains(change.Name, "/"):
		l.mu.Lock()
		l.mu.topics[change.Name] = c
		values := l.mu.values
		l.mu.Unlock()
		l.apply(change.Name, logConfig(values, c))
		l.changed(change.Name, logConfig(values, c))
		l.log.Infof("topic %s now has the settings %v", change.Name, c)
	case change.Type == zkstate.UserEntity || change.Type == zkstate.ClientEntity:
		l.quotas.changed(change, c)
		if change.Type == zkstate.UserEntity && l.users != nil && !strings.Contains(change.Name, "/") {
			l.users.changed(change.Name, c)
		}
	case change.Type == zkstate.IPEntity:
		l.addresses.changed(ctx, change.Name, c)
	case change.Type == zkstate.BrokerEntity && (change.Name == zkstate.DefaultEntity || change.Name == l.brokerID):
		c = l.readable(c)
		l.mu.Lock()
		if change.Name == zkstate.DefaultEntity {
			l.mu.all = c
		} else {
			l.mu.own = c
		}
		l.layerLocked()
		l.mu.Unlock()
		l.applyAll()
		l.log.Infof("dynamic settings of %s changed", change.Name)
	}
	return nil
}

// applyAll tells every topic known here, and the rest of the broker, the settings of now.
func (l *liveConfig) applyAll() {
	l.mu.Lock()
	values := l.mu.values
	configs := map[string]commitlog.Config{}
	for topic, c := range l.mu.topics {
		configs[topic] = logConfig(values, c)
	}
	l.mu.Unlock()
	for topic, c := range configs {
		l.apply(topic, c)
	}
	l.broker(values)
}
