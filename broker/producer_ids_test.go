package broker

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// A producer that starts while ZooKeeper is away is told to come again. UNKNOWN_SERVER_ERROR would end it for good.
func TestAProducerWaitsForZooKeeper(t *testing.T) {
	srv := zktest.Embedded(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	zk, err := zkstate.Connect(zkstate.Config{Servers: srv.Addr(), SessionTimeout: 5 * time.Second, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	defer zk.Close()
	ids := newProducerIDs(zk, 1)
	first, err := ids.Next(context.Background())
	require.NoError(t, err)
	for range zkstate.ProducerIDBlockSize - 1 {
		_, err = ids.Next(context.Background())
		require.NoError(t, err, "the rest of the block needs no ZooKeeper")
	}
	srv.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = ids.Next(ctx)
	require.ErrorIs(t, err, kerr.CoordinatorLoadInProgress)
	srv.Start()
	require.Eventually(t, func() bool {
		next, err := ids.Next(context.Background())
		return err == nil && next >= first+zkstate.ProducerIDBlockSize
	}, time.Minute, 10*time.Millisecond)
}
