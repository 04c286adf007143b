package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
	"barnabas/tools/options"
)

var apiVersionsOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server(s) to use for bootstrapping", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "command-config", Arity: options.One, Value: "String: command config property file", Doc: "Property file with settings of the client."},
	{Name: "help", Doc: "Print this text."},
	{Name: "version", Doc: "Print the version."},
}

// BrokerAPIVersions is kafka-broker-api-versions: what each broker of the cluster serves.
func BrokerAPIVersions(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.BrokerApiVersionsCommand$", intro: "This tool helps to retrieve broker version information.", options: apiVersionsOptions, needs: []string{"bootstrap-server"}, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if err := apiVersions(stdout, set); err != nil {
		fmt.Fprintf(stderr, "Exception in thread \"main\" %s: %s\n", exceptionClass(err), err)
		return 1
	}
	return 0
}

func apiVersions(stdout io.Writer, set *options.Set) error {
	client, err := adminClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	meta := kmsg.NewPtrMetadataRequest()
	meta.Topics = []kmsg.MetadataRequestTopic{}
	cluster, err := meta.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	sort.Slice(cluster.Brokers, func(i, j int) bool { return cluster.Brokers[i].NodeID < cluster.Brokers[j].NodeID })
	for _, b := range cluster.Brokers {
		rack := "null"
		if b.Rack != nil {
			rack = *b.Rack
		}
		where := fmt.Sprintf("%s:%d (id: %d rack: %s)", b.Host, b.Port, b.NodeID, rack)
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "barnabas", "tools"
		resp, err := req.RequestWith(ctx, client.Broker(int(b.NodeID)))
		if err == nil {
			err = answered(resp.ErrorCode, nil)
		}
		if err != nil {
			fmt.Fprintf(stdout, "%s -> ERROR: %s: %s\n", where, exceptionClass(err), err)
			if errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			continue
		}
		fmt.Fprintf(stdout, "%s -> (\n%s\n)\n", where, strings.Join(apiLines(resp.ApiKeys), ",\n"))
	}
	return nil
}

// apiLines describes every API that this program knows, then those that the broker serves and this program does not.
func apiLines(keys []kmsg.ApiVersionsResponseApiKey) []string {
	served := map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, k := range keys {
		served[k.ApiKey] = k
	}
	var lines []string
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		known := kmsg.RequestForKey(key)
		if known == nil {
			continue
		}
		k, ok := served[key]
		if !ok {
			lines = append(lines, fmt.Sprintf("\t%s(%d): UNSUPPORTED", apiName(key), key))
			continue
		}
		versions := fmt.Sprintf("%d to %d", k.MinVersion, k.MaxVersion)
		if k.MinVersion == k.MaxVersion {
			versions = fmt.Sprint(k.MinVersion)
		}
		usable := fmt.Sprint(min(k.MaxVersion, known.MaxVersion()))
		if k.MinVersion > known.MaxVersion() {
			usable = "NONE"
		}
		lines = append(lines, fmt.Sprintf("\t%s(%d): %s [usable: %s]", apiName(key), key, versions, usable))
	}
	return lines
}

// apiName is the name by which Kafka's own tools print an API.
func apiName(key int16) string {
	if name, ok := map[int16]string{4: "LeaderAndIsr", 17: "SaslHandshake", 22: "InitProducerId", 29: "DescribeAcls", 30: "CreateAcls", 31: "DeleteAcls", 36: "SaslAuthenticate",
		45: "AlterPartitionReassignments", 50: "DescribeUserScramCredentials", 51: "AlterUserScramCredentials", 67: "AllocateProducerIds"}[key]; ok {
		return name
	}
	if a, ok := wire.Lookup(key); ok {
		return a.Name
	}
	return kmsg.NameForKey(key)
}
