package api

import (
	"context"
	"iter"
)

type pendingTopics struct{}

func newPendingTopics() *pendingTopics { return &pendingTopics{} }
func (p *pendingTopics) close()        {}

type autoCreations struct{}

func newAutoCreations() *autoCreations { return &autoCreations{} }

func (d *Dispatcher) autoCreate(ctx context.Context, names []string) iter.Seq2[string, error] {
	return nil
}
