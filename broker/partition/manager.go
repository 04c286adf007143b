package partition

import (
	"time"

	"barnabas/broker/commitlog"
)

type Manager struct{ cfg Config }
type Partition struct{ tp commitlog.TopicPartition }

func NewManager(cfg Config, logs *commitlog.Manager, isr ISRChanger, fetchers Fetchers) *Manager {
	return &Manager{cfg: cfg}
}
func (m *Manager) Produce(req *ProduceRequest, done func([]ProduceResult)) { panic("unwritten") }
func (m *Manager) Fetch(req *FetchRequest, done func([]FetchResult))       { panic("unwritten") }
func (m *Manager) ListOffset(topic string, partition int32, timestamp int64, readCommitted bool, replicaID, currentLeaderEpoch int32, version int16) (ts, offset int64, leaderEpoch int32, err error) {
	panic("unwritten")
}
func (m *Manager) OffsetForLeaderEpoch(topic string, partition, currentLeaderEpoch, leaderEpoch int32) (epoch int32, endOffset int64, err error) {
	panic("unwritten")
}
func (m *Manager) DeleteRecords(offsets map[commitlog.TopicPartition]int64, timeout time.Duration, done func(map[commitlog.TopicPartition]DeleteRecordsResult)) {
	panic("unwritten")
}
func (m *Manager) LogDirs() []LogDirDescription { panic("unwritten") }
func (m *Manager) ApplyLeaderAndISR(req LeaderAndISR) (all error, each []PartitionError) {
	panic("unwritten")
}
func (m *Manager) StopReplicas(req StopReplicas) (all error, each []PartitionError) {
	panic("unwritten")
}
func (m *Manager) SetBrokerEpoch(epoch int64)                         { panic("unwritten") }
func (m *Manager) SetAliveBrokers(alive map[int32]BrokerInfo)         { panic("unwritten") }
func (m *Manager) Partition(topic string, partition int32) *Partition { panic("unwritten") }
func (m *Manager) LeaderCount() int                                   { panic("unwritten") }
func (m *Manager) LogDirFailed(dir string)                            { panic("unwritten") }
func (m *Manager) Close()                                             { panic("unwritten") }

func (m *Manager) VerifyTransaction(topic string, partition int32, producerID int64, sequence int32, epoch int16) (*commitlog.VerificationGuard, error) {
	panic("unwritten")
}
