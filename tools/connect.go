package tools

import "github.com/twmb/franz-go/pkg/kgo"

// Connect makes a client of the brokers at server (host:port, separated by commas) with the settings of a client property file, "" for none: what --bootstrap-server and --command-config give to
// Kafka's commands.
func Connect(server, file string, more ...kgo.Opt) (*kgo.Client, error) {
	settings, err := readProperties(file)
	if err != nil {
		return nil, err
	}
	if server != "" {
		settings["bootstrap.servers"] = server
	}
	return connect(settings, more...)
}
