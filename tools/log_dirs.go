package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

var logDirsOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: The server(s) to use for bootstrapping", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "broker-list", Arity: options.One, Value: "String: Broker list", Doc: "The ids of the brokers that are asked, as 0,1,2; all without it."},
	{Name: "command-config", Arity: options.One, Value: "String: Admin client property file", Doc: "Property file with settings of the client."},
	{Name: "describe", Doc: "Show the directories. Required."},
	{Name: "help", Doc: "Print this text."},
	{Name: "topic-list", Arity: options.One, Value: "String: Topic list", Doc: "The topics that are shown, as topic1,topic2; all without it."},
	{Name: "version", Doc: "Print the version."},
}

// LogDirs is kafka-log-dirs.
func LogDirs(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.LogDirsCommand", intro: "This tool helps to query log directory usage on the specified brokers.", options: logDirsOptions, needs: []string{"bootstrap-server", "describe"}, misread: exception, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if err := logDirs(f, set); err != nil {
		var short *terse
		if errors.As(err, &short) {
			fmt.Fprintln(stderr, short.text)
			return 1
		}
		return f.uncaught(err)
	}
	return 0
}

func logDirs(f face, set *options.Set) error {
	topics, err := set.Value("topic-list")
	if err != nil {
		return err
	}
	list, err := set.Value("broker-list")
	if err != nil {
		return err
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	door := &reassignmentByBroker{f, client}
	alive, err := door.brokers()
	if err != nil {
		return err
	}
	var all []int32
	for _, b := range alive {
		all = append(all, b.ID)
	}
	brokers := all
	if list != "" {
		if brokers, err = readBrokerList(strings.Trim(list, ",")); err != nil {
			return err
		}
		if missing := plan.Without(brokers, all); len(missing) > 0 {
			return &terse{fmt.Sprintf("ERROR: The given brokers do not exist from --broker-list: %s. Current existent brokers: %s", joinInts(missing), joinInts(all))}
		}
	}
	fmt.Fprintln(f.stdout, "Querying brokers for log directories information")
	wanted := slices.DeleteFunc(strings.Split(topics, ","), func(t string) bool { return t == "" })
	var described []brokerDirs
	for _, id := range brokers {
		dirs, err := describeDirs(client, id, wanted)
		if err != nil {
			return err
		}
		described = append(described, dirs)
	}
	fmt.Fprintf(f.stdout, "Received log directory information from brokers %s\n", joinInts(brokers))
	fmt.Fprintln(f.stdout, dirsJSON(described))
	return nil
}

// brokerDirs is what one broker tells of its directories. The originals' two releases write the same fields in two orders.
type (
	brokerDirs struct {
		Broker  int32     `json:"broker"`
		LogDirs []dirInfo `json:"logDirs"`
	}
	dirInfo struct {
		LogDir     string        `json:"logDir"`
		Error      *string       `json:"error"`
		Partitions []dirReplicas `json:"partitions"`
	}
	dirInfo39 struct {
		Partitions []dirReplicas `json:"partitions"`
		Error      *string       `json:"error"`
		LogDir     string        `json:"logDir"`
	}
	dirReplicas struct {
		Partition string `json:"partition"`
		Size      int64  `json:"size"`
		OffsetLag int64  `json:"offsetLag"`
		IsFuture  bool   `json:"isFuture"`
	}
)

// MarshalJSON writes the fields in the order of the release that was asked for.
func (d dirInfo) MarshalJSON() ([]byte, error) {
	if compat39() {
		return plainJSON(dirInfo39{d.Partitions, d.Error, d.LogDir}), nil
	}
	type plain dirInfo
	return plainJSON(plain(d)), nil
}

func describeDirs(client *kgo.Client, broker int32, topics []string) (brokerDirs, error) {
	dirs, err := cluster.New(client).Dirs(context.Background(), broker, nil)
	if err != nil {
		return brokerDirs{}, err
	}
	out := brokerDirs{Broker: broker, LogDirs: []dirInfo{}}
	for _, d := range dirs {
		info := dirInfo{LogDir: d.Path, Partitions: []dirReplicas{}}
		if d.Err != nil {
			class := exceptionClass(d.Err)
			info.Error = &class
		}
		for _, r := range d.Replicas {
			if len(topics) == 0 || slices.Contains(topics, r.Partition.Topic) {
				info.Partitions = append(info.Partitions, dirReplicas{r.Partition.String(), r.Size, r.OffsetLag, r.Future})
			}
		}
		out.LogDirs = append(out.LogDirs, info)
	}
	return out, nil
}

func dirsJSON(brokers []brokerDirs) string {
	if brokers == nil {
		brokers = []brokerDirs{}
	}
	var file any = struct {
		Version int          `json:"version"`
		Brokers []brokerDirs `json:"brokers"`
	}{1, brokers}
	if compat39() {
		file = struct {
			Brokers []brokerDirs `json:"brokers"`
			Version int          `json:"version"`
		}{brokers, 1}
	}
	return string(plainJSON(file))
}
