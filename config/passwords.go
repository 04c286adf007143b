package config

import (
	"fmt"

	"barnabas/config/secret"
)

// PasswordEncoder returns what encrypts dynamic passwords with the secret that a key has: password.encoder.secret, or
// password.encoder.old.secret. nil: it is not set.
func (v *Values) PasswordEncoder(key string) *secret.Encoder {
	text := v.String(key)
	if text == "" {
		return nil
	}
	return &secret.Encoder{
		Secret:     text,
		KeyFactory: v.String("password.encoder.keyfactory.algorithm"),
		Cipher:     v.String("password.encoder.cipher.algorithm"),
		KeyBits:    int(v.Int("password.encoder.key.length")),
		Iterations: int(v.Int("password.encoder.iterations")),
	}
}

// checkPasswords refuses a way of encryption that is not known here, where something would have to be encrypted.
func (v *Values) checkPasswords() error {
	if e := v.PasswordEncoder("password.encoder.secret"); e != nil {
		if err := e.Check(); err != nil {
			return fmt.Errorf("passwords cannot be encrypted as password.encoder.* say: %w", err)
		}
	}
	return nil
}
