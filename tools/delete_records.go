package tools

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

var deleteRecordsOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server(s) to use for bootstrapping", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "command-config", Arity: options.One, Value: "String: command config property file path", Doc: "Property file with settings of the client."},
	{Name: "help", Doc: "Print this text."},
	{Name: "offset-json-file", Arity: options.One, Value: "String: Offset json file path", Doc: `Up to which offset, exclusive, records go; -1 is the end: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}. Required.`},
	{Name: "version", Doc: "Print the version."},
}

// DeleteRecords is kafka-delete-records.
func DeleteRecords(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.DeleteRecordsCommand", intro: "This tool helps to delete records of the given partitions down to the specified offset.", options: deleteRecordsOptions, needs: []string{"bootstrap-server", "offset-json-file"}, misread: exception, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	failures, err := deleteRecords(f, set)
	switch {
	case err != nil:
		return f.uncaught(err)
	case failures > 0 && strict():
		return 1
	}
	return 0
}

func deleteRecords(f face, set *options.Set) (failures int, err error) {
	file, err := readFileOption(set, "offset-json-file")
	if err != nil {
		return 0, err
	}
	partitions, before, err := readOffsetsToDelete(file)
	if err != nil {
		return 0, err
	}
	client, err := adminClient.connect(set)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	fmt.Fprintln(f.stdout, "Executing records delete operation")
	marks, failed, err := deleteBefore(client, partitions, before)
	if err != nil {
		return 0, err
	}
	fmt.Fprintln(f.stdout, "Records delete operation completed:")
	for _, p := range partitions {
		if err := failed[p]; err != nil {
			fmt.Fprintf(f.stdout, "partition: %v\terror: %s: %s\n", p, exceptionClass(err), err)
			continue
		}
		fmt.Fprintf(f.stdout, "partition: %v\tlow_watermark: %d\n", p, marks[p])
	}
	return len(failed), nil
}

func readOffsetsToDelete(file jsonValue) (partitions []plan.Partition, before map[plan.Partition]int64, err error) {
	if err := checkVersion(file); err != nil {
		return nil, nil, err
	}
	field, there, err := file.field("partitions")
	if err != nil {
		return nil, nil, err
	}
	if !there {
		return nil, nil, &operationFailed{"Missing partitions field"}
	}
	list, err := field.list()
	if err != nil {
		return nil, nil, err
	}
	before = map[plan.Partition]int64{}
	for _, item := range list {
		p, err := readPartition(item)
		if err != nil {
			return nil, nil, err
		}
		offset, err := item.need("offset")
		if err != nil {
			return nil, nil, err
		}
		if before[p], err = offset.integer(-1, math.MaxInt64); err != nil {
			return nil, nil, err
		}
		partitions = append(partitions, p)
	}
	if twice := duplicates(partitions); len(twice) > 0 {
		return nil, nil, &commandFailed{"Offset json file contains duplicate topic partitions: " + joinPartitions(twice, ",")}
	}
	return partitions, before, nil
}

// deleteBefore deletes the records below an offset of each partition, and tells the first offsets that are left, or the error of each partition.
func deleteBefore(client *kgo.Client, partitions []plan.Partition, before map[plan.Partition]int64) (marks map[plan.Partition]int64, failed map[plan.Partition]error, err error) {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = cluster.TimeoutMs
	at := map[string]int{}
	for _, p := range partitions {
		if _, known := at[p.Topic]; !known {
			at[p.Topic] = len(req.Topics)
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		r := kmsg.NewDeleteRecordsRequestTopicPartition()
		r.Partition, r.Offset = p.ID, before[p]
		req.Topics[at[p.Topic]].Partitions = append(req.Topics[at[p.Topic]].Partitions, r)
	}
	marks, failed = map[plan.Partition]int64{}, map[plan.Partition]error{}
	for _, shard := range client.RequestSharded(context.Background(), req) {
		if shard.Err != nil {
			asked, ok := shard.Req.(*kmsg.DeleteRecordsRequest)
			if !ok {
				return nil, nil, shard.Err
			}
			for _, t := range asked.Topics { // nothing is known of these; the others are done
				for _, p := range t.Partitions {
					failed[plan.Partition{Topic: t.Topic, ID: p.Partition}] = shard.Err
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.DeleteRecordsResponse).Topics {
			for _, p := range t.Partitions {
				key := plan.Partition{Topic: t.Topic, ID: p.Partition}
				if err := answered(p.ErrorCode, nil); err != nil {
					failed[key] = err
				} else {
					marks[key] = p.LowWatermark
				}
			}
		}
	}
	return marks, failed, nil
}
