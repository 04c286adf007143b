package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// stopped is the signal that asked a command to stop.
type stopped syscall.Signal

func (s stopped) Error() string { return fmt.Sprintf("stopped by signal %d", int(s)) }

// untilStopped returns a context that ends when the process is asked to stop, and how to end listening for that.
func untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-asked:
			number, _ := s.(syscall.Signal)
			cancel(stopped(number))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(asked)
		cancel(nil)
	}
}

// stopCode is the exit code of a command that was asked to stop, as a Java process ends; 0 where it was not.
func stopCode(ctx context.Context) int {
	var s stopped
	if errors.As(context.Cause(ctx), &s) {
		const signalled = 128
		return signalled + int(s)
	}
	return 0
}
