package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAnAuthorizerThatIsNotThereIsRefused(t *testing.T) {
	for _, class := range []string{"", "kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer"} {
		_, err := New(map[string]string{"zookeeper.connect": "z", "authorizer.class.name": class})
		assert.NoError(t, err, class)
	}
	_, err := New(map[string]string{"zookeeper.connect": "z", "authorizer.class.name": "org.example.Ranger"})
	assert.ErrorContains(t, err, "authorizer.class.name")
	assert.ErrorContains(t, err, "a class of your own cannot be loaded")
	_, err = New(map[string]string{"zookeeper.connect": "z/here", "authorizer.zookeeper.url": "z/there"})
	assert.ErrorContains(t, err, "access lists are kept where zookeeper.connect points")
}
