package tools

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/twmb/franz-go/pkg/kgo"
)

// connect makes a client of a cluster; settings are those of a client property file, of which PLAINTEXT connections need few.
func connect(bootstrap string, settings map[string]string, more ...kgo.Opt) (*kgo.Client, error) {
	if bootstrap == "" {
		bootstrap = settings["bootstrap.servers"]
	}
	if bootstrap == "" {
		return nil, &badArgument{"no bootstrap servers are given"}
	}
	if p := settings["security.protocol"]; p != "" && !strings.EqualFold(p, "PLAINTEXT") {
		return nil, fmt.Errorf("security.protocol=%s is not supported yet", p)
	}
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.DialTimeout(10 * time.Second), kgo.RetryTimeout(60 * time.Second), kgo.MetadataMinAge(10 * time.Millisecond)}
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
