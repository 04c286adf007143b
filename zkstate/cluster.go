package zkstate

import (
	"context"
	"errors"
	"slices"
)

// What concerns the cluster as a whole.

// Paths of the cluster.
const (
	ClusterPath        = "/cluster"
	ClusterIDPath      = "/cluster/id"
	BrokerSequencePath = "/brokers/seqid"
	ConsumersPath      = "/consumers"
)

// EncodeClusterID writes the data of ClusterIDPath. The version is a string there, and nowhere else.
func EncodeClusterID(id string) []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.str("1")
	w.key("id")
	w.str(id)
	w.close('}')
	return w.buf
}

// DecodeClusterID reads the data of ClusterIDPath.
func DecodeClusterID(data []byte) (string, error) {
	o := parseObject("cluster id", data)
	return o.str("id"), o.wrapped()
}

// JoinCluster makes the directories that every broker expects, as far as they are missing, and answers the cluster's id; the one proposed becomes it if there is none.
func (c *Client) JoinCluster(ctx context.Context, proposed string) (string, error) {
	creates := append(directories(append(slices.Clone(persistentPaths), ClusterPath)), Create(ClusterIDPath, EncodeClusterID(proposed)))
	data, err := c.ensure(ctx, creates)
	if err != nil {
		return "", err
	}
	return DecodeClusterID(data[len(data)-1])
}

// NextBrokerSequence is a number never given before, for broker ids that are generated: the caller adds
// reserved.broker.max.id. The numbers begin at 1. A lost answer skips one.
func (c *Client) NextBrokerSequence(ctx context.Context) (int32, error) {
	for {
		r, err := c.One(ctx, Set(BrokerSequencePath, []byte{}, AnyVersion))
		switch {
		case err == nil:
			return r.Stat.Version, nil
		case errors.Is(err, ErrNoNode):
			if err := c.CreateRecursive(ctx, BrokerSequencePath, nil); err != nil {
				return 0, err
			}
		case errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil:
		default:
			return 0, err
		}
	}
}
