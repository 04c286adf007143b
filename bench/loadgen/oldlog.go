// What a log is filled with to be cleaned and converted: records whose keys come again, and messages of the format of
// before 0.11.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func settings() map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Split(*set, ",") {
		if name, value, found := strings.Cut(pair, "="); found {
			m[name] = value
		}
	}
	return m
}

// alter changes settings of a topic.
func alter() {
	var changes []kadm.AlterConfig
	for name, value := range settings() {
		changes = append(changes, kadm.AlterConfig{Name: name, Value: &value})
	}
	cl := client()
	defer cl.Close()
	answers, err := kadm.NewClient(cl).AlterTopicConfigs(context.Background(), changes, *topic)
	check(err)
	for _, a := range answers {
		check(a.Err)
	}
	out(map[string]any{})
}

// keyed sends records to partition 0, each with one of -keys keys.
func keyed() {
	rnd := rand.New(rand.NewSource(1))
	values := make([][]byte, 256)
	for i := range values {
		values[i] = value(rnd, *size, *codec != "none")
	}
	per := max(1, 64<<10 / *size)
	rounds := int(*total/int64(per**size)) + 1
	c, err := dial(leaders(*addr, *topic)[0])
	check(err)
	batches := make(chan []byte, *flight)
	slots := make(chan bool, *flight)
	t0 := time.Now()
	go func() {
		for range rounds {
			batches <- keyedBatch(rnd, per, values)
		}
		close(batches)
	}()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			check(c.produced())
			<-slots
		}
	})
	for b := range batches {
		slots <- true
		check(c.send(produceReq(*topic, 0, int16(*acks), b)))
	}
	wg.Wait()
	report(time.Since(t0), rounds*per, 0, 0)
}

func keyedBatch(rnd *rand.Rand, n int, values [][]byte) []byte {
	var recs []byte
	for i := range n {
		r := kmsg.Record{OffsetDelta: int32(i), Key: fmt.Appendf(nil, "key-%010d", rnd.Intn(*keys)), Value: values[rnd.Intn(len(values))]}
		r.Length = int32(len(r.AppendTo(nil)) - 1) // the varint of Length 0 is one byte
		recs = r.AppendTo(recs)
	}
	return sealed(recs, n, *codec)
}

// messages is batch in format v1: n messages, or one that holds them compressed.
func messages(n, size int, codec string, seed int64) []byte {
	rnd := rand.New(rand.NewSource(seed))
	var set []byte
	for i := range n {
		set = appendMessage(set, int64(i), 0, value(rnd, size, codec != "none"))
	}
	if codec == "none" {
		return set
	}
	attrs, packed := compressed(set, codec)
	return appendMessage(nil, int64(n-1), byte(attrs), packed)
}

func appendMessage(dst []byte, offset int64, attrs byte, value []byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	dst = append(dst, make([]byte, 8)...) // size and checksum
	dst = append(dst, 1, attrs)
	dst = binary.BigEndian.AppendUint64(dst, uint64(time.Now().UnixMilli()))
	dst = binary.BigEndian.AppendUint32(dst, 0xffffffff) // no key
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	dst = append(dst, value...)
	binary.BigEndian.PutUint32(dst[at+8:], uint32(len(dst)-at-12))
	binary.BigEndian.PutUint32(dst[at+12:], crc32.ChecksumIEEE(dst[at+16:]))
	return dst
}
