package broker

import (
	"context"

	"barnabas/admin"
	"barnabas/config"
	"barnabas/zkstate"
)

// readable is what stands in ZooKeeper with its passwords in the clear; those that cannot be decrypted are left out.
func (l *liveConfig) readable(c zkstate.EntityConfig) zkstate.EntityConfig {
	plain, unreadable := admin.Decrypted(c, l.passwords)
	for name, why := range unreadable {
		l.log.WithError(why).Errorf("the dynamic password %s is ignored", name)
	}
	return plain
}

// reencrypt makes what was encrypted with password.encoder.old.secret readable with the secret of now, when the broker starts. What the old
// secret does not open was encrypted anew before, by an earlier start.
func (l *liveConfig) reencrypt(ctx context.Context) error {
	old := l.mu.static.PasswordEncoder("password.encoder.old.secret")
	if old == nil || l.passwords == nil {
		return nil
	}
	c, _, err := l.zk.EntityConfig(ctx, zkstate.BrokerEntity, l.brokerID)
	if err != nil {
		return err
	}
	changed := 0
	for name, value := range c {
		if !admin.IsPassword(name) {
			continue
		}
		if plain, err := old.Decode(value); err == nil {
			if c[name], err = l.passwords.Encode(plain); err != nil {
				return err
			}
			changed++
		}
	}
	if changed == 0 {
		return nil
	}
	l.log.Infof("%d dynamic passwords are encrypted with the new password.encoder.secret", changed)
	return l.zk.SetEntityConfig(ctx, zkstate.BrokerEntity, l.brokerID, c)
}

// judge tells whether this broker could live with other dynamic settings: those of its own, or the default of all. Passwords are in the clear. What is wrong already is no reason to
// refuse another change.
func (b *Broker) judge(defaults bool, set map[string]string) error {
	v, err := b.live.proposed(defaults, set)
	if err == nil {
		err = checkThreadCounts(b.live.values(), v)
	}
	if err == nil {
		err = b.checkListeners(v)
	}
	if err != nil {
		return err
	}
	if err = b.security.check(v); err != nil && b.security.check(b.live.values()) != nil {
		return nil
	}
	return err
}

// proposed are the values if one of the dynamic layers were another.
func (l *liveConfig) proposed(defaults bool, set map[string]string) (*config.Values, error) {
	l.mu.Lock()
	static, all, own := l.mu.static, l.mu.all, l.mu.own
	l.mu.Unlock()
	if defaults {
		all = set
	} else {
		own = set
	}
	return layered(static, all, own)
}
