package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster asks brokers through a client, which stays its maker's to close.
type Cluster struct {
	client *kgo.Client
	admin  *kadm.Client
}

// New makes a Cluster of a client.
func New(client *kgo.Client) *Cluster { return &Cluster{client, kadm.NewClient(client)} }

// TimeoutMs is how long the controller may take until what was asked is done on all brokers.
const TimeoutMs = 30000

// AnswerError is a Kafka error code with the message that the broker gave beside it.
type AnswerError struct {
	Code    *kerr.Error
	Message string
}

func (e *AnswerError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return e.Code.Description
}

// Unwrap is the error code, so that errors.Is finds it.
func (e *AnswerError) Unwrap() error { return e.Code }

// Answered turns an error code and message of an answer into an error; nil for code 0.
func Answered(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	var known *kerr.Error
	if !errors.As(err, &known) {
		return err
	}
	e := &AnswerError{Code: known}
	if message != nil {
		e.Message = *message
	}
	return e
}

// IsUnreachable tells whether an error means that no broker answered, as opposed to one that answered no.
func IsUnreachable(err error) bool {
	var answer *kerr.Error
	if err == nil || errors.As(err, &answer) {
		return false
	}
	var network *net.OpError
	var name *net.DNSError
	for _, sign := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, os.ErrDeadlineExceeded, kgo.ErrClientClosed} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return errors.As(err, &network) || errors.As(err, &name) || strings.Contains(err.Error(), "unable to dial")
}

// Serves tells whether brokers serve an API, by the answer of one of them.
func Serves(ctx context.Context, client kmsg.Requestor, key int16) (bool, error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == key }), nil
}
