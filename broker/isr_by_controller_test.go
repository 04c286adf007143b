package broker

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

// outcome is what a change came to.
type outcome struct {
	changed partition.ISRChanged
	err     error
}

func ask(c partition.ISRChanger, req partition.ISRChange) chan outcome {
	done := make(chan outcome, 1)
	c.ChangeISR(req, func(changed partition.ISRChanged, err error) { done <- outcome{changed, err} })
	return done
}

func change(topic string, id byte) partition.ISRChange {
	return partition.ISRChange{TP: commitlog.TopicPartition{Topic: topic}, TopicID: commitlog.TopicID{id}, LeaderID: 1, LeaderEpoch: 4, PartitionEpoch: 7,
		ISR: []partition.ISRMember{{ID: 1, BrokerEpoch: 11}, {ID: 2, BrokerEpoch: -1}}}
}

// agreeing answers every partition with what was asked and the next epoch.
func agreeing(version int16, req *kmsg.AlterPartitionRequest) *kmsg.AlterPartitionResponse {
	req.Version = version
	resp := kmsg.NewPtrAlterPartitionResponse()
	resp.Version = version
	for _, t := range req.Topics {
		a := kmsg.NewAlterPartitionResponseTopic()
		a.Topic, a.TopidID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			r := kmsg.NewAlterPartitionResponseTopicPartition()
			r.Partition, r.LeaderID, r.LeaderEpoch, r.ISR, r.PartitionEpoch = p.Partition, 1, p.LeaderEpoch, p.NewISR, p.PartitionEpoch+1
			a.Partitions = append(a.Partitions, r)
		}
		resp.Topics = append(resp.Topics, a)
	}
	return resp
}

func TestChangesAreAskedByIDOrByNameAndAnswered(t *testing.T) {
	for version, limit := range map[int16]int16{3: 3, 1: 1} {
		var asked *kmsg.AlterPartitionRequest
		c := newISRByController(func(_ context.Context, req kmsg.Request, most int16) (kmsg.Response, error) {
			assert.Equal(t, limit, most)
			asked = req.(*kmsg.AlterPartitionRequest)
			return agreeing(version, asked), nil
		}, 1, func() int64 { return 99 }, version == 3, quiet())
		got := <-ask(c, change("t", 1))
		require.NoError(t, got.err)
		assert.Equal(t, partition.ISRChanged{LeaderID: 1, LeaderEpoch: 4, ISR: []int32{1, 2}, PartitionEpoch: 8}, got.changed)
		assert.EqualValues(t, 99, asked.BrokerEpoch)
		assert.EqualValues(t, []int64{11, -1}, []int64{asked.Topics[0].Partitions[0].NewEpochISR[0].BrokerEpoch, asked.Topics[0].Partitions[0].NewEpochISR[1].BrokerEpoch})
		c.close()
	}
}

// H16: an answer that was lost, or a controller that is none, leaves nothing behind but another try.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	tries := 0
	c := newISRByController(func(_ context.Context, req kmsg.Request, _ int16) (kmsg.Response, error) {
		tries++
		switch tries {
		case 1:
			return nil, errors.New("connection lost")
		case 2:
			resp := kmsg.NewPtrAlterPartitionResponse()
			resp.ErrorCode = kerr.NotController.Code
			return resp, nil
		}
		return agreeing(3, req.(*kmsg.AlterPartitionRequest)), nil
	}, 1, func() int64 { return 1 }, true, quiet())
	defer c.close()
	got := <-ask(c, change("t", 1))
	require.NoError(t, got.err)
	assert.Equal(t, 3, tries)
}

func TestTheControllersVerdictOnOnePartitionConcernsOnlyThat(t *testing.T) {
	c := newISRByController(func(_ context.Context, req kmsg.Request, _ int16) (kmsg.Response, error) {
		resp := agreeing(3, req.(*kmsg.AlterPartitionRequest))
		for i := range resp.Topics {
			if resp.Topics[i].TopidID[0] == 1 {
				resp.Topics[i].Partitions[0].ErrorCode = kerr.InvalidUpdateVersion.Code
			}
		}
		return resp, nil
	}, 1, func() int64 { return 1 }, true, quiet())
	defer c.close()
	refused, agreed := ask(c, change("a", 1)), ask(c, change("b", 2))
	assert.ErrorIs(t, (<-refused).err, kerr.InvalidUpdateVersion)
	assert.NoError(t, (<-agreed).err)
}

func TestEveryChangeIsAnsweredWhenTheBrokerStops(t *testing.T) {
	begun := make(chan struct{}, 100)
	c := newISRByController(func(ctx context.Context, _ kmsg.Request, _ int16) (kmsg.Response, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, 1, func() int64 { return 1 }, true, quiet())
	first := ask(c, change("a", 1))
	<-begun
	second := ask(c, change("b", 2))
	c.close()
	assert.Error(t, (<-first).err)
	assert.Error(t, (<-second).err)
}
