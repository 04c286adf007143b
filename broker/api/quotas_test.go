package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/quota"
	"barnabas/broker/wire"
)

// limited is a world in which everybody has a limit of a kind.
func limited(t *testing.T, kind quota.Kind, limit float64) (*world, *quota.Quotas) {
	w := newPlayedWorld(t)
	w.t = t
	windows := quota.Windows{Samples: 11, Size: time.Second}
	q := quota.New(windows, windows)
	q.Set(kind, quota.Limits{{User: quota.Anybody}: limit})
	w.d.deps.Quotas = q
	return w, q
}

// mutedUntil is zero if the connection never was muted.
func (w *world) mutedUntil() time.Time { return w.conns["PLAINTEXT"].MutedUntil() }

func createTopicOf(version int16, partitions int32) kmsg.Request {
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "new", partitions, 1
	req.Topics, req.TimeoutMillis, req.Version = append(req.Topics, topic), 0, version
	return req
}

func enlargeTopicOf(version int16, partitions int32) kmsg.Request {
	req := kmsg.NewPtrCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = "one", partitions
	req.Topics, req.TimeoutMillis, req.Version = append(req.Topics, topic), 0, version
	return req
}

func deleteTopicOf(version int16, _ int32) kmsg.Request {
	req := kmsg.NewPtrDeleteTopicsRequest()
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr("one")
	req.Topics, req.TopicNames, req.TimeoutMillis, req.Version = append(req.Topics, topic), []string{"one"}, 0, version
	return req
}

// codeAndThrottle are those of the one topic in an answer.
func codeAndThrottle(t *testing.T, resp kmsg.Response) (int16, time.Duration) {
	t.Helper()
	switch resp := resp.(type) {
	case *kmsg.CreateTopicsResponse:
		return resp.Topics[0].ErrorCode, millis(resp.ThrottleMillis)
	case *kmsg.CreatePartitionsResponse:
		return resp.Topics[0].ErrorCode, millis(resp.ThrottleMillis)
	case *kmsg.DeleteTopicsResponse:
		return resp.Topics[0].ErrorCode, millis(resp.ThrottleMillis)
	}
	require.Fail(t, "no such answer", "%T", resp)
	return 0, 0
}

// Twenty partitions at one in a hundred seconds, and a window of eleven seconds: then the client has to pause for half an
// hour and more, and answers of versions that do not know of the limit say so.
func TestPartitionsCreatedAndDeletedAreCounted(t *testing.T) {
	for _, c := range []struct {
		name    string
		ask     func(version int16, partitions int32) kmsg.Request
		version int16
		refused bool
	}{
		{"create", createTopicOf, 5, false}, {"create, strict", createTopicOf, 6, true},
		{"enlarge", enlargeTopicOf, 2, false}, {"enlarge, strict", enlargeTopicOf, 3, true},
		{"delete", deleteTopicOf, 4, false}, {"delete, strict", deleteTopicOf, 5, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, q := limited(t, quota.Mutation, 0.01)
			w.admin.createTopics = func(specs []admin.TopicSpec, _ bool) []admin.TopicResult {
				return []admin.TopicResult{{Name: specs[0].Name, NumPartitions: specs[0].Partitions, Err: specs[0].Permit(int(specs[0].Partitions))}}
			}
			w.admin.createPartitions = func(specs []admin.PartitionsSpec, _ bool) []admin.PartitionsResult {
				return []admin.PartitionsResult{{Name: specs[0].Name, Count: specs[0].Count, Err: specs[0].Permit(int(specs[0].Count))}}
			}
			deleted := 0
			w.admin.deleteTopics = func(names []string) []admin.DeleteResult {
				deleted += len(names)
				return []admin.DeleteResult{{Name: names[0]}}
			}
			errorCode, throttle := codeAndThrottle(t, w.ask(createTopicOf(7, 20)))
			require.Equal(t, kerr.RequestTimedOut.Code, errorCode, "it is created, and not waited for")
			require.Zero(t, throttle, "the last that is allowed may be too many")

			errorCode, throttle = codeAndThrottle(t, w.ask(c.ask(c.version, 1)))
			assert.InDelta(t, 2040, throttle.Seconds(), 110, "one more counts where it is not refused")
			assert.InDelta(t, throttle.Seconds(), time.Until(w.mutedUntil()).Seconds(), 60, "and nothing is read for so long")
			if c.refused {
				assert.Equal(t, kerr.ThrottlingQuotaExceeded.Code, errorCode)
				assert.Zero(t, deleted)
			} else {
				assert.Equal(t, kerr.RequestTimedOut.Code, errorCode)
			}
			rates := q.Rates(quota.Mutation, time.Now())
			require.Len(t, rates, 1)
			assert.Equal(t, "ANONYMOUS", rates[0].Client.User)
			assert.InDelta(t, float64(throttle.Milliseconds()), rates[0].PauseMs, 1)
		})
	}
}

func TestTopicsThatCreateThemselvesAreCountedAndNotRefused(t *testing.T) {
	w, q := limited(t, quota.Mutation, 1)
	w.admin.createTopics = func(specs []admin.TopicSpec, _ bool) []admin.TopicResult {
		return []admin.TopicResult{{Name: specs[0].Name, Err: specs[0].Permit(100)}}
	}
	for range 2 {
		req := kmsg.NewPtrMetadataRequest()
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr("new")
		req.Topics, req.AllowAutoTopicCreation, req.Version = append(req.Topics, topic), true, 9
		resp := w.ask(req).(*kmsg.MetadataResponse)
		assert.Equal(t, kerr.LeaderNotAvailable.Code, resp.Topics[0].ErrorCode)
		assert.Zero(t, resp.ThrottleMillis)
	}
	assert.Less(t, q.Rates(quota.Mutation, time.Now())[0].Tokens, -180.0)
}

// Every answer but those between brokers says how long to pause when a client has used up its time.
func TestEveryAnswerTellsOfTheTimeThatWasUsedUp(t *testing.T) {
	for _, api := range wire.APIs {
		if api.Key == 0 || api.Key == 17 || api.Key == 36 { // below; those of the exchange come to the gate
			continue
		}
		t.Run(api.Name, func(t *testing.T) {
			w, q := limited(t, quota.Request, 1)
			q.Took(quota.Request, quota.Client{User: "ANONYMOUS"}, int64(time.Minute), time.Now())
			req := kmsg.RequestForKey(api.Key)
			if api.Key == 29 { // what it asks about must make sense
				req = describeACLsOf(anyACL)
			}
			req.SetVersion(api.Max)
			began := time.Now()
			select {
			case o := <-w.start("PLAINTEXT", frame(req)):
				require.NoError(t, o.closed)
				resp := decodeAnswer(t, api.Key, api.Max, o.response)
				if exempt[api.Key] {
					assert.Zero(t, w.mutedUntil())
					assert.Positive(t, q.ExemptRate(time.Now()))
					return
				}
				assert.WithinRange(t, w.mutedUntil(), began.Add(time.Second), time.Now().Add(time.Second), "a window at most")
				if told, ok := resp.(kmsg.ThrottleResponse); assert.True(t, ok) {
					throttleMs, _ := told.Throttle()
					assert.EqualValues(t, 1000, throttleMs)
				}
			case <-time.After(time.Minute):
				require.Fail(t, "no answer")
			}
		})
	}
}

func TestAStrangerIsNotExemptFromTheLimitOfBrokers(t *testing.T) {
	w, q := limited(t, quota.Request, 1)
	w.d.deps.Authorizer = nothing{}
	q.Took(quota.Request, quota.Client{User: "ANONYMOUS"}, int64(time.Minute), time.Now())
	req := kmsg.NewPtrStopReplicaRequest()
	req.Version = 3
	w.ask(req)
	assert.NotZero(t, w.mutedUntil())
}

// nothing is allowed.
type nothing struct{ fickle }

func (nothing) Allows(acl.Subject, kmsg.ACLOperation, kmsg.ACLResourceType, string) bool {
	return false
}

func TestFollowersAndProducersThatWaitForNothingAreNotPaused(t *testing.T) {
	w, q := limited(t, quota.Request, 1)
	q.Took(quota.Request, quota.Client{User: "ANONYMOUS"}, int64(time.Minute), time.Now())
	fetch := kmsg.NewPtrFetchRequest()
	fetch.Version, fetch.ReplicaID = 12, 2
	w.ask(fetch)
	assert.Zero(t, w.mutedUntil())
	produce := kmsg.NewPtrProduceRequest()
	produce.Version = 9
	require.True(t, w.handle("PLAINTEXT", frame(produce)).silent)
	assert.Zero(t, w.mutedUntil())

	produce.Acks = 1
	resp := w.ask(produce).(*kmsg.ProduceResponse)
	assert.EqualValues(t, 1000, resp.ThrottleMillis)
	assert.NotZero(t, w.mutedUntil())
}

// The time of a worker counts as much as that of the connection's goroutine; what a request waits for otherwise does not.
func TestTheTimeOfWorkersCounts(t *testing.T) {
	t.Parallel()
	w, q := limited(t, quota.Request, 1e9)
	const long = 50 * time.Millisecond
	w.admin.alter = func(specs []admin.AlterSpec) []admin.AlterResult {
		time.Sleep(long) // the work
		return make([]admin.AlterResult, len(specs))
	}
	req := kmsg.NewPtrAlterConfigsRequest()
	resource := kmsg.NewAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, "one"
	req.Resources, req.Version = append(req.Resources, resource), 2
	w.ask(req)
	used := q.Rates(quota.Request, time.Now())[0].PerSecond // percent, over ten seconds
	assert.Greater(t, used, 0.3)

	create := createTopicOf(7, 1)
	create.(*kmsg.CreateTopicsRequest).TimeoutMillis = 4000
	w.ask(create)
	assert.Less(t, q.Rates(quota.Request, time.Now())[0].PerSecond-used, 30.0, "it waited for leaders that do not come, which were another forty")
}
