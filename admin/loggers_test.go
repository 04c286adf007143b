package admin

import (
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheLevelOfTheLogChangesWhileTheBrokerRuns(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	a := New(Config{BrokerID: 1, Log: logrus.NewEntry(log)}, nil)
	alter := func(broker string, validateOnly bool, ops ...ConfigOp) error {
		return a.IncrementalAlterConfigs(t.Context(), []IncrementalSpec{{Resource: Resource{ResourceBrokerLogger, broker}, Ops: ops}}, validateOnly)[0].Err
	}
	to := func(level string) ConfigOp { return ConfigOp{"root", OpSet, &level} }
	require.NoError(t, alter("1", true, to("DEBUG")))
	assert.Equal(t, logrus.InfoLevel, log.GetLevel())
	require.NoError(t, alter("1", false, to("DEBUG")))
	assert.Equal(t, logrus.DebugLevel, log.GetLevel())
	told, err := a.describeLoggers(Resource{ResourceBrokerLogger, "1"})
	require.NoError(t, err)
	assert.Equal(t, "DEBUG", *told[0].Value)

	name := "TRACE"
	for _, c := range []struct {
		broker string
		op     ConfigOp
		why    string
	}{
		{"1", to("debug"), "Cannot set the log level of root to debug as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"},
		{"1", ConfigOp{"kafka.server", OpSet, &name}, "Logger kafka.server does not exist!"},
		{"1", ConfigOp{"root", OpDelete, nil}, "Removing the log level of the root logger is not allowed"},
		{"1", ConfigOp{"root", OpAppend, &name}, "APPEND operation is not allowed for the BROKER_LOGGER resource"},
		{"1", ConfigOp{"root", OpSet, nil}, "Null value not supported for : root"},
		{"2", to("TRACE"), "Unexpected node id. Expected 1, but received 1"},
		{"", to("TRACE"), "Node id must be an integer, but it is: "},
	} {
		assert.ErrorContains(t, alter(c.broker, false, to("TRACE"), c.op), c.why)
	}
	assert.Equal(t, logrus.DebugLevel, log.GetLevel(), "one fault and nothing is set")
}
