package admin

import (
	"strconv"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"
)

// The levels of loggers (KIP-412). There is one logger, root. Its level changes while the broker runs and is what the start said again after the next start: nothing is kept, as with Kafka.

const rootLogger = "root"

var levelNames = map[logrus.Level]string{logrus.PanicLevel: "FATAL", logrus.FatalLevel: "FATAL", logrus.ErrorLevel: "ERROR",
	logrus.WarnLevel: "WARN", logrus.InfoLevel: "INFO", logrus.DebugLevel: "DEBUG", logrus.TraceLevel: "TRACE"}

var levels = map[string]logrus.Level{"FATAL": logrus.FatalLevel, "ERROR": logrus.ErrorLevel, "WARN": logrus.WarnLevel, "INFO": logrus.InfoLevel, "DEBUG": logrus.DebugLevel, "TRACE": logrus.TraceLevel}

// describeLoggers tells the level of the one logger there is.
func (a *Admin) describeLoggers(r Resource) ([]ConfigDescription, error) {
	if r.Name == "" {
		return nil, failed(kerr.InvalidRequest, "Broker id must not be empty")
	}
	if _, err := a.brokerEntity(r.Name, "Broker id must be an integer, but it is: %s", "Unexpected broker id, expected %d but received %s"); err != nil {
		return nil, err
	}
	level := levelNames[a.cfg.Log.Logger.GetLevel()]
	return []ConfigDescription{{Name: rootLogger, Value: &level, Source: SourceBrokerLogger}}, nil
}

// alterLoggers sets levels, or only says whether it would. Nothing is set unless all is legal. The broker's id is told twice in one message: so does Kafka.
func (a *Admin) alterLoggers(spec IncrementalSpec, validateOnly bool) error {
	id, err := strconv.ParseInt(spec.Resource.Name, 10, 32)
	switch {
	case err != nil:
		return failed(kerr.InvalidRequest, "Node id must be an integer, but it is: %s", spec.Resource.Name)
	case int32(id) != a.cfg.BrokerID:
		return failed(kerr.InvalidRequest, "Unexpected node id. Expected %d, but received %d", a.cfg.BrokerID, a.cfg.BrokerID)
	}
	for _, op := range spec.Ops {
		if err := checkLevel(op); err != nil {
			return err
		}
	}
	if validateOnly {
		return nil
	}
	for _, op := range spec.Ops {
		a.cfg.Log.Warnf("the log's level becomes %s until the next start", *op.Value)
		a.cfg.Log.Logger.SetLevel(levels[*op.Value])
	}
	return nil
}

func checkLevel(op ConfigOp) error {
	switch {
	case op.Op == OpAppend:
		return failed(kerr.InvalidRequest, "APPEND operation is not allowed for the BROKER_LOGGER resource")
	case op.Op == OpSubtract:
		return failed(kerr.InvalidRequest, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource")
	case op.Name != rootLogger:
		return failed(kerr.InvalidConfig, "Logger %s does not exist!", op.Name)
	case op.Op == OpDelete:
		return failed(kerr.InvalidRequest, "Removing the log level of the root logger is not allowed")
	case op.Op != OpSet:
		return failed(kerr.InvalidRequest, "Unknown operations type %d", op.Op)
	case op.Value == nil:
		return failed(kerr.InvalidRequest, "Null value not supported for : %s", op.Name)
	}
	if _, legal := levels[*op.Value]; !legal {
		return failed(kerr.InvalidConfig, "Cannot set the log level of %s to %s as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN", op.Name, *op.Value)
	}
	return nil
}
