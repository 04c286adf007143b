package zkstate

import (
	"context"
	"errors"
	"time"
)

// betweenSessions is the pause before something is asked again in the next session.
const betweenSessions = 50 * time.Millisecond

// ThroughSessions repeats what a start asks of ZooKeeper while sessions and connections end under it, as they do on a machine that has just come up and is slow. It is for what may be
// done twice and is not bound to a session: reads, paths that must exist, the first registration. Apache Kafka's brokers end themselves instead.
func (c *Client) ThroughSessions(ctx context.Context, what string, ask func() error) error {
	for {
		err := ask()
		if !errors.Is(err, ErrSessionExpired) && !errors.Is(err, ErrConnectionLoss) {
			return err
		}
		c.log.WithError(err).Warnf("%s: to be tried again in the next session", what)
		select {
		case <-time.After(betweenSessions):
		case <-ctx.Done():
			return err
		}
	}
}
