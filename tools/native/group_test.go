package native

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestACoordinatorIsWaitedForAndNothingElse(t *testing.T) {
	asked := 0
	answers := func(errs ...error) func() (kadm.DescribedGroups, error) {
		asked = 0
		return func() (kadm.DescribedGroups, error) {
			err := errs[min(asked, len(errs)-1)]
			asked++
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := awaitCoordinator(ctx, time.Hour, 0, answers(kerr.CoordinatorNotAvailable, kerr.CoordinatorNotAvailable, nil))
	assert.NoError(t, err)
	assert.Equal(t, 3, asked)
	_, err = awaitCoordinator(ctx, time.Hour, 0, answers(kerr.GroupAuthorizationFailed, nil))
	assert.Equal(t, kerr.GroupAuthorizationFailed, err)
	_, err = awaitCoordinator(ctx, 0, 0, answers(kerr.CoordinatorNotAvailable, nil))
	assert.Equal(t, kerr.CoordinatorNotAvailable, err)
	assert.Equal(t, 1, asked)
	cancel()
	_, err = awaitCoordinator(ctx, time.Hour, time.Hour, answers(kerr.CoordinatorNotAvailable))
	assert.Equal(t, kerr.CoordinatorNotAvailable, err)
}
