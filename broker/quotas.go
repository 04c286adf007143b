package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/quota"
	"barnabas/config"
	"barnabas/zkstate"
)

// clientQuotas brings the limits of users and clients from ZooKeeper to those who hold clients to them.
type clientQuotas struct {
	zk   *zkstate.Client
	log  *logrus.Entry
	held *quota.Quotas

	mu struct {
		sync.Mutex
		entities map[quota.Entity]zkstate.EntityConfig
	}
}

func newClientQuotas(zk *zkstate.Client, v *config.Values, log *logrus.Entry) *clientQuotas {
	q := &clientQuotas{zk: zk, log: log}
	q.held = quota.New(quotaWindows(v, ""), quotaWindows(v, "controller."))
	q.mu.entities = map[quota.Entity]zkstate.EntityConfig{}
	return q
}

// quotaWindows are those of quotas; prefix is "controller." for those of mutations.
func quotaWindows(v *config.Values, prefix string) quota.Windows {
	return quota.Windows{Samples: int(v.Int(prefix + "quota.window.num")), Size: time.Duration(v.Int(prefix+"quota.window.size.seconds")) * time.Second}
}

// load reads the limits of all, in pipelined batches.
func (q *clientQuotas) load(ctx context.Context) error {
	listed, err := q.zk.Do(ctx, []zkstate.Op{zkstate.Children(zkstate.EntityTypePath(zkstate.UserEntity)), zkstate.Children(zkstate.EntityTypePath(zkstate.ClientEntity))})
	if err != nil {
		return err
	}
	users, clients := listed[0], listed[1]
	if err := errors.Join(users.Err, clients.Err); err != nil {
		return err
	}
	changes := make([]zkstate.ConfigChange, 0, len(users.Children)+len(clients.Children))
	lists := make([]zkstate.Op, len(users.Children))
	for i, user := range users.Children {
		changes = append(changes, zkstate.ConfigChange{Type: zkstate.UserEntity, Name: user})
		lists[i] = zkstate.Children(zkstate.EntityPath(zkstate.UserEntity, user) + "/" + string(zkstate.ClientEntity))
	}
	for _, client := range clients.Children {
		changes = append(changes, zkstate.ConfigChange{Type: zkstate.ClientEntity, Name: client})
	}
	ofUsers, err := q.zk.Do(ctx, lists)
	if err != nil {
		return err
	}
	for i, listed := range ofUsers {
		for _, client := range listed.Children { // none where a user has no clients
			changes = append(changes, zkstate.ConfigChange{Type: zkstate.UserEntity, Name: zkstate.UserClientEntity(users.Children[i], client)})
		}
	}
	reads := make([]zkstate.Op, len(changes))
	for i, c := range changes {
		reads[i] = zkstate.Get(zkstate.EntityPath(c.Type, c.Name))
	}
	results, err := q.zk.Do(ctx, reads)
	if err != nil {
		return err
	}
	entities := map[quota.Entity]zkstate.EntityConfig{}
	for i, r := range results {
		if r.Err != nil {
			continue // removed since it was listed
		}
		c, err := zkstate.DecodeEntityConfig(r.Data)
		if err == nil {
			err = q.put(entities, changes[i], c)
		}
		if err != nil {
			q.log.WithError(err).Warnf("the quotas of %s %s cannot be read and do not hold", changes[i].Type, changes[i].Name)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.entities = entities
	q.enforceLocked()
	return nil
}

// changed takes what was read of one user or client.
func (q *clientQuotas) changed(change zkstate.ConfigChange, c zkstate.EntityConfig) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.put(q.mu.entities, change, c); err != nil {
		q.log.WithError(err).Warnf("the quotas of %s %s cannot be read; those of before hold", change.Type, change.Name)
		return
	}
	q.enforceLocked()
	q.log.Infof("%s %s now has the quotas %v", change.Type, change.Name, quotasIn(c))
}

func (q *clientQuotas) put(entities map[quota.Entity]zkstate.EntityConfig, change zkstate.ConfigChange, c zkstate.EntityConfig) error {
	e, err := quotaEntity(change)
	if err != nil {
		return err
	}
	if limits := quotasIn(c); len(limits) > 0 {
		entities[e] = limits
	} else {
		delete(entities, e)
	}
	return nil
}

// quotasIn is what of a configuration is held to: a user's passwords stand there too.
func quotasIn(c zkstate.EntityConfig) zkstate.EntityConfig {
	limits := zkstate.EntityConfig{}
	for _, key := range quota.Keys {
		if text, set := c[key]; set {
			limits[key] = text
		}
	}
	return limits
}

// enforceLocked puts in force what is known. Limits are few: all are made anew.
func (q *clientQuotas) enforceLocked() {
	for kind, key := range quota.Keys {
		limits := quota.Limits{}
		for e, c := range q.mu.entities {
			text, set := c[key]
			if !set {
				continue
			}
			kind := quota.Kind(kind)
			limit, err := quotaLimit(kind, text)
			if err != nil {
				q.log.WithError(err).Warnf("the quota %s=%s does not hold", key, text)
				continue
			}
			limits[e] = limit * kind.Unit()
		}
		q.held.Set(quota.Kind(kind), limits)
	}
}

// quotaLimit reads a limit. Bytes are counted in whole ones, and a limit of none holds nobody, as with Kafka; where fractions
// are allowed, nothing is a limit.
func quotaLimit(kind quota.Kind, text string) (float64, error) {
	if kind == quota.Produce || kind == quota.Fetch {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n <= 0 {
			err = errors.New("it is not a positive number of bytes per second")
		}
		return float64(n), err
	}
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && (n < 0 || math.IsNaN(n) || math.IsInf(n, 0)) {
		err = errors.New("it is negative or no number")
	}
	return n, err
}

// quotaEntity is whom a node below /config/users or /config/clients is about.
func quotaEntity(change zkstate.ConfigChange) (e quota.Entity, err error) {
	if change.Type == zkstate.ClientEntity {
		e.Client, err = quotaPart(change.Name)
		return e, err
	}
	user, client, both := strings.Cut(change.Name, "/"+string(zkstate.ClientEntity)+"/")
	if e.User, err = quotaPart(user); err != nil || !both {
		return e, err
	}
	e.Client, err = quotaPart(client)
	return e, err
}

func quotaPart(node string) (quota.Part, error) {
	if node == zkstate.DefaultEntity {
		return quota.Anybody, nil
	}
	name, err := zkstate.DesanitizeName(node)
	if err != nil {
		return quota.Part{}, fmt.Errorf("%q is no name: %w", node, err)
	}
	return quota.Named(name), nil
}
