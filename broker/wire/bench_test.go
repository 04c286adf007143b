package wire

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/vfs"
)

func BenchmarkDecodeProduce(b *testing.B) {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 11
	topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	topic.Topic = "orders"
	partition.Records = make([]byte, 1000)
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	body := req.AppendTo(nil)
	b.ReportAllocs()
	for range b.N {
		if _, err := DecodeRequest(Header{Key: 0, Version: 11}, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeFetch(b *testing.B) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 17
	topic := kmsg.NewFetchRequestTopic()
	topic.Partitions = make([]kmsg.FetchRequestTopicPartition, 100)
	req.Topics = append(req.Topics, topic)
	body := req.AppendTo(nil)
	b.ReportAllocs()
	for range b.N {
		if _, err := DecodeRequest(Header{Key: 1, Version: 17}, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeFetch(b *testing.B) {
	file, _ := recordFile(b)
	resp := &FetchResponse{Topics: []FetchTopic{{Topic: "orders", Partitions: make([]FetchPartition, 100)}}}
	for i := range resp.Topics[0].Partitions {
		resp.Topics[0].Partitions[i] = NewFetchPartition(int32(i))
		resp.Topics[0].Partitions[i].Records = vfs.NewRange(file, 0, 1000, nil)
	}
	b.ReportAllocs()
	for range b.N {
		answer := EncodeFetch(Header{Key: 1, Version: 17}, resp)
		answer.Sent()
	}
}
