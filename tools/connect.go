package tools

import (
	"io"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/zkaccess"
	"barnabas/zkstate"
)

// Connect makes a client of the brokers at server (host:port, separated by commas) with the settings of a client property file, "" for none: what --bootstrap-server and --command-config give to
// Kafka's commands. name is what the client is called unless the file says otherwise.
func Connect(server, file, name string, more ...kgo.Opt) (*kgo.Client, error) {
	settings, err := readProperties(file)
	if err != nil {
		return nil, err
	}
	if server != "" {
		settings["bootstrap.servers"] = server
	}
	nameClient(settings, name)
	return connect(settings, more...)
}

// ConnectZooKeeper opens a session for who only reads, by the settings of a file for --zk-tls-config-file, "" for none, and as whom KAFKA_OPTS says. It fails with zkstate.ErrNoSession when no server gives
// one in time.
func ConnectZooKeeper(servers, tlsFile string, within time.Duration) (*zkstate.Client, error) {
	access, err := zkaccess.Read(tlsFile, "", os.Getenv("KAFKA_OPTS"))
	if err != nil {
		return nil, err
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return zkstate.Connect(zkstate.Config{Servers: servers, TLS: access.TLS, SASL: access.Account, Reads: true, SessionTimeout: toolsTimeout, ConnectTimeout: within, Log: logrus.NewEntry(quiet)})
}
