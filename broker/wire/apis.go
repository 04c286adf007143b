package wire

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// API is one row of the table: an API that is served, and the versions of it.
type API struct {
	Key      int16
	Name     string
	Min, Max int16
	flexible int16 // first version with compact types and tagged fields; 1<<15-1 when there is none
}

// Serves tells whether version is in the served range.
func (a API) Serves(version int16) bool { return version >= a.Min && version <= a.Max }

// Flexible tells whether requests and responses of this version use compact types and tagged fields (KIP-482).
func (a API) Flexible(version int16) bool { return version >= a.flexible }

// APIs is the table of what this broker serves, in the order of keys. ApiVersions is answered from it, requests
// are decoded by it: what is not in it is neither advertised nor reachable. The upper ends are those of Kafka 3.9
// in ZooKeeper mode, and so are the lower ones.
var APIs = table([]API{
	{Key: 0, Name: "Produce", Min: 0, Max: 11},
	{Key: 1, Name: "Fetch", Min: 0, Max: 17},
	{Key: 2, Name: "ListOffsets", Min: 0, Max: 9},
	{Key: 3, Name: "Metadata", Min: 0, Max: 12},
	{Key: 4, Name: "LeaderAndISR", Min: 0, Max: 7},
	{Key: 5, Name: "StopReplica", Min: 0, Max: 4},
	{Key: 6, Name: "UpdateMetadata", Min: 0, Max: 8},
	{Key: 7, Name: "ControlledShutdown", Min: 0, Max: 3},
	{Key: 8, Name: "OffsetCommit", Min: 0, Max: 9},
	{Key: 9, Name: "OffsetFetch", Min: 0, Max: 9},
	{Key: 10, Name: "FindCoordinator", Min: 0, Max: 6},
	{Key: 11, Name: "JoinGroup", Min: 0, Max: 9},
	{Key: 12, Name: "Heartbeat", Min: 0, Max: 4},
	{Key: 13, Name: "LeaveGroup", Min: 0, Max: 5},
	{Key: 14, Name: "SyncGroup", Min: 0, Max: 5},
	{Key: 15, Name: "DescribeGroups", Min: 0, Max: 5},
	{Key: 16, Name: "ListGroups", Min: 0, Max: 5},
	{Key: KeySaslHandshake, Name: "SASLHandshake", Min: 0, Max: 1},
	{Key: 18, Name: "ApiVersions", Min: 0, Max: 4},
	{Key: 19, Name: "CreateTopics", Min: 0, Max: 7},
	{Key: 20, Name: "DeleteTopics", Min: 0, Max: 6},
	{Key: 21, Name: "DeleteRecords", Min: 0, Max: 2},
	{Key: 22, Name: "InitProducerID", Min: 0, Max: 5},
	{Key: 23, Name: "OffsetForLeaderEpoch", Min: 0, Max: 4},
	{Key: 24, Name: "AddPartitionsToTxn", Min: 0, Max: 5},
	{Key: 25, Name: "AddOffsetsToTxn", Min: 0, Max: 4},
	{Key: 26, Name: "EndTxn", Min: 0, Max: 4},
	{Key: 27, Name: "WriteTxnMarkers", Min: 0, Max: 1},
	{Key: 28, Name: "TxnOffsetCommit", Min: 0, Max: 4},
	{Key: 29, Name: "DescribeACLs", Min: 0, Max: 3},
	{Key: 30, Name: "CreateACLs", Min: 0, Max: 3},
	{Key: 31, Name: "DeleteACLs", Min: 0, Max: 3},
	{Key: 32, Name: "DescribeConfigs", Min: 0, Max: 4},
	{Key: 33, Name: "AlterConfigs", Min: 0, Max: 2},
	{Key: 34, Name: "AlterReplicaLogDirs", Min: 0, Max: 2},
	{Key: 35, Name: "DescribeLogDirs", Min: 0, Max: 4},
	{Key: KeySaslAuthenticate, Name: "SASLAuthenticate", Min: 0, Max: 2},
	{Key: 37, Name: "CreatePartitions", Min: 0, Max: 3},
	{Key: 38, Name: "CreateDelegationToken", Min: 0, Max: 3},
	{Key: 39, Name: "RenewDelegationToken", Min: 0, Max: 2},
	{Key: 40, Name: "ExpireDelegationToken", Min: 0, Max: 2},
	{Key: 41, Name: "DescribeDelegationToken", Min: 0, Max: 3},
	{Key: 42, Name: "DeleteGroups", Min: 0, Max: 2},
	{Key: 43, Name: "ElectLeaders", Min: 0, Max: 2},
	{Key: 44, Name: "IncrementalAlterConfigs", Min: 0, Max: 1},
	{Key: 45, Name: "AlterPartitionReassignments", Min: 0, Max: 0},
	{Key: 46, Name: "ListPartitionReassignments", Min: 0, Max: 0},
	{Key: 47, Name: "OffsetDelete", Min: 0, Max: 0},
	{Key: 48, Name: "DescribeClientQuotas", Min: 0, Max: 1},
	{Key: 49, Name: "AlterClientQuotas", Min: 0, Max: 1},
	{Key: 50, Name: "DescribeUserSCRAMCredentials", Min: 0, Max: 0},
	{Key: 51, Name: "AlterUserSCRAMCredentials", Min: 0, Max: 0},
	{Key: 56, Name: "AlterPartition", Min: 0, Max: 3},
	{Key: 57, Name: "UpdateFeatures", Min: 0, Max: 1},
	{Key: 60, Name: "DescribeCluster", Min: 0, Max: 1},
	{Key: 61, Name: "DescribeProducers", Min: 0, Max: 0},
	{Key: 65, Name: "DescribeTransactions", Min: 0, Max: 0},
	{Key: 66, Name: "ListTransactions", Min: 0, Max: 1},
	{Key: 67, Name: "AllocateProducerIDs", Min: 0, Max: 0},
	{Key: 68, Name: "ConsumerGroupHeartbeat", Min: 0, Max: 0},
	{Key: 69, Name: "ConsumerGroupDescribe", Min: 0, Max: 0},
})

// KeyApiVersions is the key of the API that is asked before anything is known about the other side, so that its
// headers have rules of their own.
const KeyApiVersions = 18

// The APIs by which a client proves who it is (KIP-43, KIP-152).
const (
	KeySaslHandshake    = 17
	KeySaslAuthenticate = 36
)

const keyControlledShutdown = 7

var byKey map[int16]API

// Lookup finds an API that is served.
func Lookup(key int16) (API, bool) {
	api, ok := byKey[key]
	return api, ok
}

func table(apis []API) []API {
	byKey = make(map[int16]API, len(apis))
	for i := range apis {
		apis[i].flexible = firstFlexible(apis[i].Key)
		byKey[apis[i].Key] = apis[i]
	}
	return apis
}

func firstFlexible(key int16) int16 {
	req := kmsg.RequestForKey(key)
	for version := int16(0); version <= req.MaxVersion(); version++ {
		req.SetVersion(version)
		if req.IsFlexible() {
			return version
		}
	}
	return 1<<15 - 1
}

// APIVersions is the answer to an ApiVersions request of a served version: the table. The caller adds what it
// knows of features.
func APIVersions(version int16) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = version
	resp.ApiKeys = make([]kmsg.ApiVersionsResponseApiKey, len(APIs))
	for i, api := range APIs {
		resp.ApiKeys[i] = apiRow(api)
	}
	return resp
}

// UnsupportedAPIVersions is the answer to an ApiVersions request newer than this broker knows (KIP-511): in the
// layout of version 0, which every client can read, with UNSUPPORTED_VERSION and the one row that tells the client
// which version to step down to. It has to be encoded under a header whose version is 0.
func UnsupportedAPIVersions() *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	api, _ := Lookup(KeyApiVersions)
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{apiRow(api)}
	return resp
}

func apiRow(api API) kmsg.ApiVersionsResponseApiKey {
	row := kmsg.NewApiVersionsResponseApiKey()
	row.ApiKey, row.MinVersion, row.MaxVersion = api.Key, api.Min, api.Max
	return row
}
