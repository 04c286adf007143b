package dumplog

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// transactions decodes a record of __transaction_state.
func transactions(r logRecord) (p parsed, err error) {
	if r.Key == nil {
		return p, &exception{"java.lang.NullPointerException", fmt.Sprintf("record at offset %d has no key", r.Offset)}
	}
	if len(r.Key) < 2 {
		return p, &exception{"java.nio.BufferUnderflowException", fmt.Sprintf("record at offset %d has a key of %d bytes", r.Offset, len(r.Key))}
	}
	if v := int16(binary.BigEndian.Uint16(r.Key)); v != 0 {
		p.key, _ = text(fmt.Sprintf("unknown::version=%d", v))
		return p, nil
	}
	var key kmsg.TxnMetadataKey
	if err := key.ReadFrom(r.Key); err != nil {
		return p, brokenRecord(r, err)
	}
	p.key, _ = text("transaction_metadata::transactionalId=" + key.TransactionalID)
	value := deleted
	if r.Value != nil {
		var v kmsg.TxnMetadataValue
		if err := v.ReadFrom(r.Value); err != nil {
			return p, brokenRecord(r, err)
		}
		value = transactionAsText(&v)
	}
	p.value = &value
	return p, nil
}

func brokenRecord(r logRecord, err error) error {
	return &exception{"org.apache.kafka.common.protocol.types.SchemaException", fmt.Sprintf("record at offset %d: %s", r.Offset, err)}
}

func transactionAsText(v *kmsg.TxnMetadataValue) string {
	var partitions []string
	for _, t := range v.Topics {
		for _, p := range t.Partitions {
			partitions = append(partitions, fmt.Sprintf("%s-%d", t.Topic, p))
		}
	}
	return fmt.Sprintf("producerId:%d,producerEpoch:%d,state=%s,partitions=[%s],txnLastUpdateTimestamp=%d,txnTimeoutMs=%d",
		v.ProducerID, v.ProducerEpoch, v.State, strings.Join(partitions, ","), v.LastUpdateTimestamp, v.TimeoutMillis)
}
