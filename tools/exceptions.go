package tools

import (
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// The originals report errors as Java exceptions, and scripts look for them. Here errors are errors; this file knows under which name each goes out.

// answerError is a Kafka error code with the message that the broker gave beside it.
type answerError = cluster.AnswerError

// answered turns an error code and message of an answer into an error; nil for code 0.
func answered(code int16, message *string) error { return cluster.Answered(code, message) }

// badArgument is a call that makes no sense, found after the arguments were parsed.
type badArgument struct{ reason string }

func (e *badArgument) Error() string { return e.reason }

// commandFailed is an administrative command that cannot be done, operationFailed one whose input is wrong; the originals keep them apart.
type (
	commandFailed   struct{ reason string }
	operationFailed struct{ reason string }
)

// thrown is an error under the name of the exception that the originals throw.
type thrown struct{ class, reason string }

func (e *thrown) Error() string { return e.reason }

// notSupported is a request, by its name in the originals' errors, that a broker does not serve.
type notSupported struct{ request string }

func (e *notSupported) Error() string { return "The node does not support " + e.request }

func (e *commandFailed) Error() string   { return e.reason }
func (e *operationFailed) Error() string { return e.reason }

// classes are exceptions whose names do not follow from the names of their codes.
var classes = map[int16]string{
	kerr.TopicAlreadyExists.Code:    "TopicExistsException",
	kerr.InvalidTopicException.Code: "InvalidTopicException",
	kerr.InvalidConfig.Code:         "InvalidConfigurationException",
	kerr.UnknownServerError.Code:    "UnknownServerException",
	kerr.RequestTimedOut.Code:       "TimeoutException",
	kerr.NotLeaderForPartition.Code: "NotLeaderOrFollowerException",
	kerr.NonEmptyGroup.Code:         "GroupNotEmptyException",
	kerr.KafkaStorageError.Code:     "KafkaStorageException",
	kerr.CorruptMessage.Code:        "CorruptRecordException",
	kerr.MessageTooLarge.Code:       "RecordTooLargeException",
	kerr.UnknownMemberID.Code:       "UnknownMemberIdException",
	kerr.InvalidGroupID.Code:        "InvalidGroupIdException",
	kerr.GroupIDNotFound.Code:       "GroupIdNotFoundException",

	kerr.DelegationTokenAuthDisabled.Code:        "DelegationTokenDisabledException",
	kerr.DelegationTokenRequestNotAllowed.Code:   "UnsupportedByAuthenticationException",
	kerr.DelegationTokenAuthorizationFailed.Code: "DelegationTokenAuthorizationException",
}

// exceptionClass names the Java class that stands for an error in what the originals print.
func exceptionClass(err error) string {
	var bad *badArgument
	var failed *commandFailed
	var operation *operationFailed
	var tooFew *plan.TooFewBrokersError
	var named *thrown
	var unsupported *notSupported
	var code *kerr.Error
	switch {
	case errors.As(err, &named):
		return named.class
	case errors.As(err, &unsupported):
		return "org.apache.kafka.common.errors.UnsupportedVersionException"
	case errors.As(err, &tooFew):
		return "org.apache.kafka.common.errors.InvalidReplicationFactorException"
	case errors.As(err, &bad):
		return "java.lang.IllegalArgumentException"
	case errors.As(err, &failed) && compat39():
		return "org.apache.kafka.server.common.AdminCommandFailedException"
	case errors.As(err, &failed):
		return "kafka.common.AdminCommandFailedException"
	case errors.As(err, &operation) && compat39():
		return "org.apache.kafka.server.common.AdminOperationException"
	case errors.As(err, &operation):
		return "kafka.admin.AdminOperationException"
	case !errors.As(err, &code):
		return "org.apache.kafka.common.KafkaException"
	}
	const errorsPackage = "org.apache.kafka.common.errors."
	if class := classes[code.Code]; class != "" {
		return errorsPackage + class
	}
	var name strings.Builder
	for _, word := range strings.Split(strings.ToLower(code.Message), "_") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	name.WriteString("Exception")
	return errorsPackage + name.String()
}

// stackTrace is an error as an exception prints itself, without the places in Java's code. What a broker answered arrives wrapped.
func stackTrace(err error) string {
	own := exceptionClass(err) + ": " + err.Error() + "\n"
	var sum *suppressing
	if errors.As(err, &sum) {
		for _, other := range sum.others {
			own += "\tSuppressed: " + exceptionClass(other) + ": " + other.Error() + "\n"
		}
		return own
	}
	if fromBroker(err) {
		return "java.util.concurrent.ExecutionException: " + own + "Caused by: " + own
	}
	return own
}

// executionFailure is the message of an error where the originals print that of what they waited for: what a broker answered is named by its class.
func executionFailure(err error) string {
	if fromBroker(err) {
		return exceptionClass(err) + ": " + err.Error()
	}
	return err.Error()
}

// fromBroker tells whether a broker answered the error.
func fromBroker(err error) bool {
	var answer *answerError
	return errors.As(err, &answer)
}

// terse is an error that the originals print without a word before it.
type terse struct{ text string }

func (e *terse) Error() string { return e.text }
