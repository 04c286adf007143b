package broker

import (
	"context"

	"barnabas/zkstate"
)

// follow looks now, in each new session and whenever a node or the list below it changes, until ctx ends. Each look has to leave the watch for the next.
func follow(ctx context.Context, events <-chan zkstate.Event, path string, look func(context.Context)) {
	look(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-events:
			if !open {
				return
			}
			if e.Kind == zkstate.SessionStarted || e.Path == path {
				look(ctx)
			}
		}
	}
}
