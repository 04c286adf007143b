package native

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/zkstate"
)

// Exit ends the process with a code of its own, after the command has said all there is to say.
type Exit int

// The exit codes of all native commands.
const (
	Failed      Exit = 1
	WrongUsage  Exit = 2
	NotFound    Exit = 3
	Unreachable Exit = 4
	Unhealthy   Exit = 5
)

const exitCodes = "Exit codes: 0 done, 1 failed, 2 called wrongly, 3 not found, 4 no broker reachable, 5 done but the cluster is unhealthy."

func (e Exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// ExitCode is the code of the process.
func (e Exit) ExitCode() int { return int(e) }

// usageError is a call that makes no sense.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func wrongUsage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// exitOf is the code that an error ends with. An Exit says nothing more; whoever returns it has.
func exitOf(err error) Exit {
	var exit Exit
	var usage *usageError
	var missing *cluster.NotFoundError
	var impossible *cluster.ImpossibleResetError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit
	case errors.As(err, &usage), errors.As(err, &impossible):
		return WrongUsage
	case errors.As(err, &missing):
		return NotFound
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.GroupIDNotFound):
		return NotFound
	case errors.Is(err, zkstate.ErrNoSession), cluster.IsUnreachable(err):
		return Unreachable
	}
	return Failed
}
