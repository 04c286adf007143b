package broker

import (
	"context"
	"sync"

	"github.com/sirupsen/logrus"

	"barnabas/admin"
	"barnabas/broker/auth"
	"barnabas/config"
	"barnabas/zkstate"
)

// credentials are those of SCRAM that stand below /config/users, as this broker last read them: an exchange with a client waits for no ZooKeeper.
type credentials struct {
	zk  *zkstate.Client
	log *logrus.Entry

	mu struct {
		sync.RWMutex
		of map[string]map[string]auth.Credential // by mechanism and user
	}
}

func newCredentials(zk *zkstate.Client, log *logrus.Entry) *credentials {
	c := &credentials{zk: zk, log: log}
	c.mu.of = map[string]map[string]auth.Credential{}
	return c
}

// load reads those of all users.
func (c *credentials) load(ctx context.Context) error {
	listed, err := c.zk.One(ctx, zkstate.Children(zkstate.EntityTypePath(zkstate.UserEntity)))
	if err != nil {
		return err
	}
	reads := make([]zkstate.Op, len(listed.Children))
	for i, name := range listed.Children {
		reads[i] = zkstate.Get(zkstate.EntityPath(zkstate.UserEntity, name))
	}
	results, err := c.zk.Do(ctx, reads)
	if err != nil {
		return err
	}
	of := map[string]map[string]auth.Credential{}
	for i, r := range results {
		if r.Err != nil {
			continue // deleted since it was listed
		}
		settings, err := zkstate.DecodeEntityConfig(r.Data)
		if err != nil {
			c.log.WithError(err).Warnf("the settings of user %s cannot be read", listed.Children[i])
			continue
		}
		c.put(of, listed.Children[i], settings)
	}
	c.mu.Lock()
	c.mu.of = of
	c.mu.Unlock()
	return nil
}

// changed takes over what the settings of a user say now. name is that of the node.
func (c *credentials) changed(name string, settings zkstate.EntityConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(c.mu.of, name, settings)
}

func (c *credentials) put(of map[string]map[string]auth.Credential, name string, settings zkstate.EntityConfig) {
	user, err := zkstate.DesanitizeName(name)
	if err != nil {
		c.log.WithError(err).Warnf("%s is not the name of a user", name)
		return
	}
	for _, mechanism := range []string{config.ScramSHA256, config.ScramSHA512} {
		if of[mechanism] == nil {
			of[mechanism] = map[string]auth.Credential{}
		}
		text, there := settings[mechanism]
		if !there {
			delete(of[mechanism], user)
			continue
		}
		known, err := admin.ParseScramCredential(text)
		if err != nil {
			c.log.WithError(err).Warnf("the credential of user %s for %s cannot be read", user, mechanism)
			delete(of[mechanism], user)
			continue
		}
		of[mechanism][user] = auth.Credential{Salt: known.Salt, StoredKey: known.StoredKey, ServerKey: known.ServerKey, Iterations: known.Iterations}
	}
}

// lookup finds the credentials of a mechanism.
func (c *credentials) lookup(mechanism string) func(user string) (auth.Credential, bool) {
	return func(user string) (auth.Credential, bool) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		found, known := c.mu.of[mechanism][user]
		return found, known
	}
}
