package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPasswordsAreEncryptedAsTheSettingsSay(t *testing.T) {
	v, err := New(map[string]string{"password.encoder.secret": "s", "password.encoder.cipher.algorithm": "AES/GCM/NoPadding", "password.encoder.key.length": "256"})
	require.NoError(t, err)
	assert.Empty(t, v.WithoutEffect())
	e := v.PasswordEncoder("password.encoder.secret")
	require.NotNil(t, e)
	assert.Equal(t, "AES/GCM/NoPadding", e.Cipher)
	assert.Equal(t, 256, e.KeyBits)
	assert.Equal(t, 4096, e.Iterations)
	assert.Nil(t, v.PasswordEncoder("password.encoder.old.secret"))
}

func TestAWayOfEncryptionThatIsNotKnownIsRefused(t *testing.T) {
	_, err := New(map[string]string{"password.encoder.secret": "the secret", "password.encoder.cipher.algorithm": "Blowfish"})
	require.ErrorContains(t, err, "Blowfish")
	assert.NotContains(t, err.Error(), "the secret")
	_, err = New(map[string]string{"password.encoder.cipher.algorithm": "Blowfish"})
	assert.NoError(t, err, "nothing is to be encrypted")
}
