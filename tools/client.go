package tools

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/tools/options"
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

// connectAsAsked makes a client from --bootstrap-server and the option that names a property file.
func connectAsAsked(set *options.Set, fileOption string) (*kgo.Client, error) {
	servers, err := set.Value("bootstrap-server")
	if err != nil {
		return nil, err
	}
	file, err := set.Value(fileOption)
	if err != nil {
		return nil, err
	}
	settings, err := readProperties(file)
	if err != nil {
		return nil, err
	}
	return connect(servers, settings)
}

// serves tells whether brokers serve an API, by the answer of one of them.
func serves(client *kgo.Client, key int16) (bool, error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(context.Background(), client)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == key }), nil
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
