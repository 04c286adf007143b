package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/txn"
)

// ListTransactions, key 66, versions 0 to 1 (KIP-664).
//
//	1  a filter by duration (KIP-994)
func (d *Dispatcher) listTransactions(c *call, req *kmsg.ListTransactionsRequest) {
	ask := &txn.ListRequest{ProducerIDs: req.ProducerIDFilters, LongerMs: -1}
	if req.Version >= 1 {
		ask.LongerMs = req.DurationFilterMillis
	}
	resp := kmsg.NewPtrListTransactionsResponse()
	for _, name := range req.StateFilters {
		state, known := txn.ParseState(name)
		if !known {
			if !slices.Contains(resp.UnknownStateFilters, name) {
				resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
			}
			ask.NoState = true
			continue
		}
		ask.States = append(ask.States, state)
	}
	d.deps.Transactions.List(ask, func(list []txn.Listed, err error) {
		if err != nil {
			resp = kmsg.NewPtrListTransactionsResponse()
			resp.ErrorCode, _ = code(err)
		}
		for _, t := range list {
			if !d.mayTransaction(c, kmsg.ACLOperationDescribe, t.ID) {
				continue
			}
			row := kmsg.NewListTransactionsResponseTransactionState()
			row.TransactionalID, row.ProducerID, row.TransactionState = t.ID, t.ProducerID, t.State.String()
			resp.TransactionStates = append(resp.TransactionStates, row)
		}
		c.answer(resp)
	})
}
