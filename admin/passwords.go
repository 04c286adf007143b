package admin

import (
	"errors"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/config"
	"barnabas/config/secret"
)

// Passwords among a broker's dynamic settings stand encrypted in ZooKeeper (KIP-226), each broker's with its own secret. In the clear they
// are only on their way: from a request to ZooKeeper, and from there to whom they are for.

// IsPassword tells whether a broker's dynamic setting is kept encrypted.
func IsPassword(name string) bool {
	k := config.LookupBroker(name)
	return k != nil && k.Type == config.Password && k.Update != config.ReadOnly
}

var errNoSecret = errors.New("password.encoder.secret is not set")

// Decrypted is a configuration as it stands in ZooKeeper with its passwords in the clear. Those that cannot be decrypted are left out, and
// told with the reason.
func Decrypted(stored map[string]string, with *secret.Encoder) (plain map[string]string, unreadable map[string]error) {
	plain, unreadable = maps.Clone(stored), map[string]error{}
	for name, value := range stored {
		if !IsPassword(name) {
			continue
		}
		text, err := "", errNoSecret
		if with != nil {
			text, err = with.Decode(value)
		}
		if err != nil {
			delete(plain, name)
			unreadable[name] = err
		} else {
			plain[name] = text
		}
	}
	return plain, unreadable
}

// changedPasswords are the passwords in a changed configuration that are not those that stand there, which are encrypted.
func changedPasswords(configs, stored map[string]string) (names []string) {
	for _, name := range keysInOrder(configs, nil) {
		if value, kept := stored[name]; IsPassword(name) && (!kept || value != configs[name]) {
			names = append(names, name)
		}
	}
	return names
}

// encrypt encrypts the passwords that changed. What was there stays as it is, also what this broker cannot read.
func (a *Admin) encrypt(configs, stored map[string]string) error {
	for _, name := range changedPasswords(configs, stored) {
		text, err := a.cfg.Passwords.Encode(configs[name])
		if err != nil {
			return failed(kerr.InvalidRequest, "%s: %v", name, err)
		}
		configs[name] = text
	}
	return nil
}

// judge asks the broker whether it could live with a changed configuration.
func (a *Admin) judge(r Resource, configs, stored map[string]string) error {
	if a.cfg.Judge == nil {
		return nil
	}
	kept := maps.Clone(configs)
	for _, name := range changedPasswords(configs, stored) {
		delete(kept, name)
	}
	plain, _ := Decrypted(kept, a.cfg.Passwords)
	for _, name := range changedPasswords(configs, stored) {
		plain[name] = configs[name]
	}
	err := a.cfg.Judge(r.Name == "", plain)
	var contradiction *config.ContradictionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &contradiction):
		return failed(kerr.InvalidRequest, "%s", contradiction.Error())
	}
	return invalidTogether(err.Error())
}
