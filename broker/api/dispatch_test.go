package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/metadata"
	"barnabas/broker/wire"
)

func TestEveryAPIServedHasAHandlerAndNoOtherHasOne(t *testing.T) {
	served := make(map[int16]bool)
	for _, api := range wire.APIs {
		served[api.Key] = true
		require.Contains(t, handlers, api.Key, api.Name)
	}
	for key := range handlers {
		require.True(t, served[key], "%s has a handler and is not advertised", kmsg.NameForKey(key))
	}
}

// A frame is given back, and read into by another connection, before a handler runs; only Produce keeps its frame. SaslAuthenticate's bytes are for the gate.
func TestRequestsThatCarryBytesAreDecodedFromACopy(t *testing.T) {
	var carries func(reflect.Type) bool
	carries = func(of reflect.Type) bool {
		switch of.Kind() {
		case reflect.Pointer:
			return carries(of.Elem())
		case reflect.Slice:
			return of.Elem().Kind() == reflect.Uint8 || carries(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				if of.Field(i).IsExported() && carries(of.Field(i).Type) {
					return true
				}
			}
		}
		return false
	}
	for _, api := range wire.APIs {
		if api.Key != produceKey && api.Key != wire.KeySaslAuthenticate {
			require.Equal(t, carries(reflect.TypeOf(kmsg.RequestForKey(api.Key))), outlived[api.Key], api.Name)
		}
	}
}

func TestWhatIsNotServedClosesTheConnection(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	for _, request := range [][]byte{
		nil,
		{0, 3},
		{0, 99, 0, 0, 0, 0, 0, 7, 0xff, 0xff}, // no such API
		{0, 3, 0, 77, 0, 0, 0, 7, 0xff, 0xff, 0, 0, 0, 0},   // no such version
		{0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff, 0x7f, 0, 0, 0}, // more topics than bytes
	} {
		require.Error(t, w.handle("PLAINTEXT", request).closed, "% x", request)
	}
}

func TestBytesBehindARequestArePassedOver(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	require.NoError(t, w.handle("PLAINTEXT", []byte{0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff, 0, 0, 0, 0, 1, 2}).closed)
}

func TestAFullQueueOfWorkersClosesTheConnection(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	w.d.workers.close()
	o := w.handle("PLAINTEXT", frame(kmsg.NewPtrInitProducerIDRequest()))
	require.ErrorIs(t, o.closed, errBusy)
}

func TestWorkersRefuseBeyondTheirQueueAndFinishWhatTheyTook(t *testing.T) {
	w := newWorkers(1, 2)
	started, release := make(chan struct{}), make(chan struct{})
	var ran atomic.Int32
	require.True(t, w.submit(func(context.Context) {
		close(started)
		<-release
		ran.Add(1)
	}))
	<-started
	for range 2 {
		require.True(t, w.submit(func(ctx context.Context) {
			<-ctx.Done() // closing tells those that still run
			ran.Add(1)
		}))
	}
	require.False(t, w.submit(func(context.Context) { ran.Add(100) }))
	closed := make(chan struct{})
	go func() {
		w.close()
		w.close()
		close(closed)
	}()
	close(release)
	<-closed
	require.Equal(t, int32(3), ran.Load())
	require.False(t, w.submit(func(context.Context) {}))
}

func TestClosingAnswersWhatWaitsForATopic(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	ready := make(chan struct{})
	w.d.waits.await(time.Hour, func(s *metadata.Snapshot) bool { return false }, func(*metadata.Snapshot) { close(ready) })
	w.d.Close()
	<-ready
	again := make(chan struct{})
	w.d.waits.await(time.Hour, func(s *metadata.Snapshot) bool { return false }, func(*metadata.Snapshot) { close(again) })
	<-again
}

func TestErrorsOfAProducerIDGoToTheClient(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	w.ids.err = kerr.CoordinatorLoadInProgress
	resp := w.ask(kmsg.NewPtrInitProducerIDRequest()).(*kmsg.InitProducerIDResponse)
	require.Equal(t, kerr.CoordinatorLoadInProgress.Code, resp.ErrorCode)
	require.Equal(t, int64(-1), resp.ProducerID)
}

func TestFaultsAreLoggedAndTimeoutsAreTold(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	var logged bytes.Buffer
	w.d.log.Logger.SetOutput(&logged)
	w.ids.err = fmt.Errorf("reading a znode: %w", context.DeadlineExceeded)
	require.Equal(t, kerr.RequestTimedOut.Code, w.ask(kmsg.NewPtrInitProducerIDRequest()).(*kmsg.InitProducerIDResponse).ErrorCode)
	w.d.faults("a test", nil, kerr.NotController, context.Canceled)
	require.NotContains(t, logged.String(), "a test")
	w.admin.deleteTopics = func(names []string) []admin.DeleteResult {
		return []admin.DeleteResult{{Name: names[0], Err: errors.New("the dog ate it")}}
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames = 1000, []string{"one"}
	require.Equal(t, kerr.UnknownServerError.Code, w.ask(req).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
	require.Contains(t, logged.String(), "the dog ate it")
}

func TestTheControllersAPIsGoToTheController(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	for _, key := range []int16{7, 43, 45, 46, 56, 67} {
		var asked kmsg.Request
		w.controller.do = func(req kmsg.Request) kmsg.Response {
			asked = req
			return req.ResponseKind()
		}
		req := kmsg.RequestForKey(key)
		api, _ := wire.Lookup(key)
		req.SetVersion(api.Max)
		w.ask(req)
		require.NotNil(t, asked, kmsg.NameForKey(key))
	}
}

func TestAKRaftControllerIsRefused(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	order := kmsg.NewPtrLeaderAndISRRequest()
	order.Version, order.IsKRaftController, order.ControllerEpoch = 7, true, 50
	require.Equal(t, kerr.UnknownServerError.Code, w.ask(order).(*kmsg.LeaderAndISRResponse).ErrorCode)
	stop := kmsg.NewPtrStopReplicaRequest()
	// The library writes the flag behind the epoch, Kafka (and wire.DecodeRequest) has it in front: the epoch's first byte.
	stop.Version, stop.ControllerEpoch = 4, 1<<24
	require.Equal(t, kerr.UnknownServerError.Code, w.ask(stop).(*kmsg.StopReplicaResponse).ErrorCode)
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.Version, update.IsKRaftController, update.ControllerEpoch = 8, true, 50
	require.Equal(t, kerr.UnknownServerError.Code, w.ask(update).(*kmsg.UpdateMetadataResponse).ErrorCode)
	require.Equal(t, int32(1), w.cache.Load().ControllerEpoch)
}

func TestABrokerEpochNotYetLearnedIsObeyed(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	update := w.update(readCluster(t))
	update.BrokerEpoch = int64(w.epoch) + 5
	require.Zero(t, w.ask(update).(*kmsg.UpdateMetadataResponse).ErrorCode)
}

// frameWatch sees when a frame is given back.
type frameWatch struct {
	freed, answered chan struct{}
}

func (f *frameWatch) Freed(*wire.Request) {
	select {
	case <-f.freed:
	default:
		close(f.freed)
	}
}

func (f *frameWatch) Answered(_ *wire.Request, answer wire.Response, _ error) {
	answer.Sent()
	close(f.answered)
}

func TestRequestsThatWaitHoldNoFrame(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	fetch := fetchAsk{epoch: -1, replica: -1, minBytes: 1, topics: []fetchAskTopic{part0(cluster, "fresh", 0)}}.request(12)
	fetch.MaxWaitMillis = 60_000
	produce := produceOne(-1, "two", 0, oneBatch(t, "v")) // broker 2 never fetches
	produce.TimeoutMillis = 60_000
	for _, req := range []kmsg.Request{fetch, produce} {
		watch := &frameWatch{freed: make(chan struct{}), answered: make(chan struct{})}
		w.d.Handle(wire.NewRequest(w.conns["PLAINTEXT"], frame(req), time.Now(), watch))
		<-watch.freed
		select {
		case <-watch.answered:
			t.Fatal("did not wait")
		default:
		}
	}
}
