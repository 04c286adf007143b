package tools

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/tools/options"
)

// Clients push metrics to brokers (KIP-714) only where there is no ZooKeeper. The tool asks nevertheless, so that what is said is the brokers' word.

var clientMetricsOptions = []options.Option{
	{Name: "alter", Doc: "Change what clients are to push."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "command-config", Arity: options.One, Value: "String: command config property file", Doc: "Property file with settings of the client."},
	{Name: "delete", Doc: "Delete what clients are to push."},
	{Name: "describe", Doc: "Show what clients are to push."},
	{Name: "generate-name", Doc: "Make a random name up."},
	{Name: "help", Doc: "Print this text."},
	{Name: "interval", Arity: options.One, Value: "String: push interval", Doc: "Milliseconds between two pushes; empty is the default again."},
	{Name: "list", Doc: "List the names."},
	{Name: "match", Arity: options.One, Value: "String: k1=v1,k2=v2", Doc: "Which clients, by client_id, client_instance_id, client_software_name, client_software_version, client_source_address and client_source_port."},
	{Name: "metrics", Arity: options.One, Value: "String: m1,m2", Doc: "What the names of the metrics begin with."},
	{Name: "name", Arity: options.One, Value: "String: name", Doc: "The name."},
	{Name: "version", Doc: "Print the version."},
}

// ClientMetrics is kafka-client-metrics, which came with 3.7: there is one text.
func ClientMetrics(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "org.apache.kafka.tools.ClientMetricsCommand", intro: "This tool helps to show and change which metrics clients push to brokers.", options: clientMetricsOptions,
		misread: onlyReason, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	reason, err := wrongMetricsCall(set)
	switch {
	case reason != "":
		return f.usage(reason)
	case err != nil:
		fmt.Fprintf(stderr, "%s\n%s\n", err, stackTrace(err))
		return 1
	}
	if err := clientMetrics(f, set); err != nil {
		fmt.Fprintf(stdout, "Error while executing client metrics command : %s\n", err)
		f.logError(err)
		return 1
	}
	return 0
}

// metricsActions are what can be done, each with what makes no sense with it.
var metricsActions = []struct {
	name   string
	denies []string
}{
	{"alter", nil},
	{"delete", []string{"generate-name", "interval", "match", "metrics"}},
	{"describe", []string{"generate-name", "interval", "match", "metrics"}},
	{"list", []string{"name", "generate-name", "interval", "match", "metrics"}},
}

// wrongMetricsCall says what is wrong with a call: as a reason that comes with the help, or as an error.
func wrongMetricsCall(set *options.Set) (reason string, err error) {
	actions := 0
	for _, a := range metricsActions {
		if set.Has(a.name) {
			actions++
		}
	}
	if actions != 1 {
		return "Command must include exactly one action: --alter, --delete, --describe or --list.", nil
	}
	if !set.Has("bootstrap-server") {
		return "", &badArgument{"--bootstrap-server must be specified."}
	}
	for _, a := range metricsActions {
		for _, denied := range a.denies {
			if set.Has(a.name) && set.Has(denied) {
				return notTogether(a.name, denied), nil
			}
		}
	}
	switch {
	case set.Has("alter") && set.Has("name") == set.Has("generate-name"):
		return "", &badArgument{"One of --name or --generate-name must be specified with --alter."}
	case set.Has("delete") && !set.Has("name"):
		return "", &badArgument{"A client metrics resource name must be specified with --delete."}
	}
	return "", nil
}

func clientMetrics(f face, set *options.Set) error {
	const patience = 30 * time.Second
	name, err := set.Value("name")
	if err != nil {
		return err
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := cluster.New(client)
	switch {
	case set.Has("alter"):
		if set.Has("generate-name") {
			name = randomUUID()
		}
		settings, err := metricsSettings(set)
		if err != nil {
			return err
		}
		if err := alterMetrics(ctx, c, name, settings); err != nil {
			return err
		}
		fmt.Fprintf(f.stdout, "Altered client metrics config for %s.\n", name)
	case set.Has("delete"):
		present, err := c.ClientMetricsConfig(ctx, name)
		if err != nil {
			return err
		}
		var settings []cluster.Setting
		for _, s := range present {
			settings = append(settings, cluster.Setting{Name: s.Name})
		}
		if err := alterMetrics(ctx, c, name, settings); err != nil {
			return err
		}
		fmt.Fprintf(f.stdout, "Deleted client metrics config for %s.\n", name)
	case set.Has("list"):
		names, err := metricsNames(ctx, client)
		if err != nil {
			return err
		}
		fmt.Fprintln(f.stdout, strings.Join(names, "\n"))
	default:
		names := []string{name}
		if !set.Has("name") {
			if names, err = metricsNames(ctx, client); err != nil {
				return err
			}
		}
		return describeMetrics(ctx, f, c, names)
	}
	return nil
}

func describeMetrics(ctx context.Context, f face, c *cluster.Cluster, names []string) error {
	for _, name := range names {
		fmt.Fprintf(f.stdout, "Client metrics configs for %s are:\n", name)
		settings, err := c.ClientMetricsConfig(ctx, name)
		if err != nil {
			return err
		}
		for _, s := range settings {
			value := "null"
			if s.Value != nil {
				value = *s.Value
			}
			fmt.Fprintf(f.stdout, "  %s=%s\n", s.Name, value)
		}
	}
	return nil
}

// metricsSettings reads what is to be set; an empty value takes a setting back.
func metricsSettings(set *options.Set) ([]cluster.Setting, error) {
	var settings []cluster.Setting
	for _, s := range []struct{ option, name string }{{"interval", "interval.ms"}, {"metrics", "metrics"}, {"match", "match"}} {
		value, err := set.Value(s.option)
		if err != nil {
			return nil, err
		}
		if set.Has(s.option) {
			settings = append(settings, cluster.Setting{Name: s.name, Value: value})
		}
	}
	return settings, nil
}

// alterMetrics sets settings, and takes those without a value back.
func alterMetrics(ctx context.Context, c *cluster.Cluster, name string, settings []cluster.Setting) error {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeClientMetrics, name
	for _, s := range settings {
		var value *string
		if s.Value != "" {
			value = &s.Value
		}
		r.Configs = append(r.Configs, cluster.Change(s.Name, value))
	}
	return c.AlterConfigs(ctx, false, r)
}

// metricsNames lists the names, which brokers of a cluster on ZooKeeper do not serve.
func metricsNames(ctx context.Context, client *kgo.Client) ([]string, error) {
	req := kmsg.NewPtrListConfigResourcesRequest()
	served, err := cluster.Serves(ctx, client, req.Key())
	if err != nil {
		return nil, err
	}
	if !served {
		return nil, &notSupported{"LIST_CLIENT_METRICS_RESOURCES"}
	}
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = answered(resp.ErrorCode, nil)
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range resp.ConfigResources {
		names = append(names, r.Name)
	}
	return names, nil
}

// randomUUID is a random id as Kafka writes them: 22 characters of base64, the first of which would not make it look like an option.
func randomUUID() string {
	for {
		id := uuid.New()
		if text := base64.RawURLEncoding.EncodeToString(id[:]); text[0] != '-' {
			return text
		}
	}
}
