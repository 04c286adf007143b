package tools

import "github.com/twmb/franz-go/pkg/kgo"

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
