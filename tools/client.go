package tools

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/subcommands"
)

// clientOptions names the options that tell a tool of its cluster and of how to be a client of it.
type clientOptions struct {
	servers []string // the first that is given counts
	file    string   // names a property file
	single  string   // gives single settings as name=value; "" where a tool has none
}

var (
	adminClient    = clientOptions{[]string{"bootstrap-server"}, "command-config", ""}
	electionClient = clientOptions{[]string{"bootstrap-server"}, "admin.config", ""}
)

// arguments are what a command was given.
type arguments interface {
	Value(name string) (string, error)
	Values(name string) []string
}

// callArguments are the arguments of a command that has sub-commands, or options in the manner of getopt.
type callArguments struct{ *subcommands.Call }

// Value is the last value of an argument, of which there may be many.
func (c callArguments) Value(name string) (string, error) { return c.Call.Value(name), nil }

// settings are what the client is to be, under the names of a client property file: single settings count before the file's, and what the option says about brokers before both.
func (o clientOptions) settings(given arguments) (map[string]string, error) {
	file, err := given.Value(o.file)
	if err != nil {
		return nil, err
	}
	settings, err := readSettings(file, given.Values(o.single))
	if err != nil {
		return nil, err
	}
	for _, option := range o.servers {
		servers, err := given.Value(option)
		if err != nil {
			return nil, err
		}
		if servers != "" {
			settings["bootstrap.servers"] = servers
			break
		}
	}
	return settings, nil
}

// nameClient gives a client a name in the brokers' eyes, unless it has one.
func nameClient(settings map[string]string, name string) {
	if settings["client.id"] == "" {
		settings["client.id"] = name
	}
}

// connect makes a client as the options say.
func (o clientOptions) connect(given arguments) (*kgo.Client, error) {
	settings, err := o.settings(given)
	if err != nil {
		return nil, err
	}
	return connect(settings)
}

const dialTimeout = 10 * time.Second

// connect makes a client of a cluster; settings are those of a client property file.
func connect(settings map[string]string, more ...kgo.Opt) (*kgo.Client, error) {
	bootstrap := settings["bootstrap.servers"]
	if bootstrap == "" {
		return nil, &badArgument{"no bootstrap servers are given"}
	}
	opts, err := secure(settings)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.RetryTimeout(60*time.Second), kgo.MetadataMinAge(10*time.Millisecond))
	if id := settings["client.id"]; id != "" {
		opts = append(opts, kgo.ClientID(id))
	}
	return kgo.NewClient(append(opts, more...)...)
}

// readProperties reads a client property file; no path is no settings.
func readProperties(path string) (map[string]string, error) {
	set := map[string]string{}
	if path == "" {
		return set, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := (&properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}).LoadBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range p.Keys() {
		set[name], _ = p.Get(name)
	}
	return set, nil
}

// readSettings reads name=value arguments over a property file.
func readSettings(file string, given []string) (map[string]string, error) {
	set, err := readProperties(file)
	if err != nil {
		return nil, err
	}
	for _, p := range given {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, &badArgument{fmt.Sprintf("Invalid command line properties: %q is not of the form name=value", p)}
		}
		set[strings.TrimSpace(name)] = value
	}
	return set, nil
}
