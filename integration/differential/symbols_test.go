package differential

import (
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What only a broker's earlier answers tell is named by a symbol in a generated request, and each side puts there what it was told: the member id, the generation, the producer id and
// epoch, the id of a topic. The numbers are far from all others; near them lie "one more" and "one less".
const (
	generationSymbol       = 70_000
	producerSymbol         = int64(1) << 40
	epochSymbol            = 20_000
	near                   = 100
	memberMark             = "@"
	topicMark              = "\xff\xfe"
	longest                = 14 // of the names of topics that are asked for by id
	neverATopic            = "never-was-any-id"
	producerAt, epochAt    = 43, 51 // in a batch of format 2
	checksumAt, checkedAt  = 17, 21
	smallestBatch, magicAt = 61, 16
	attributesAt, control  = 21, 1 << 5
	timesAt                = 27
)

func memberSymbol(group string) string { return memberMark + group }

func topicSymbol(name string) (id [16]byte) {
	copy(id[:], topicMark+name)
	return id
}

// known is what one side has told so far.
type known struct {
	members     map[string]string // by group, the one told last
	generations map[string]int32
	producers   map[string]producer // by transactional id; "" for those without
	last        producer
	topics      map[string][16]byte
	names       map[[16]byte]string
	everyone    map[string]string // symbols of all member ids ever told
}

type producer struct {
	id    int64
	epoch int16
}

func newKnown() *known {
	return &known{members: map[string]string{}, generations: map[string]int32{}, producers: map[string]producer{}, topics: map[string][16]byte{}, names: map[[16]byte]string{}, everyone: map[string]string{}}
}

// put replaces the symbols of a request.
func (k *known) put(req kmsg.Request) {
	k.translate(reflect.ValueOf(req).Elem(), "", "")
}

func (k *known) translate(v reflect.Value, group, transaction string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			k.translate(v.Elem(), group, transaction)
		}
	case reflect.String:
		if of, ok := strings.CutPrefix(v.String(), memberMark); ok && k.members[of] != "" {
			v.SetString(k.members[of])
		}
	case reflect.Array:
		k.putTopic(v)
	case reflect.Int64:
		if v.Int() == producerSymbol {
			v.SetInt(k.producer(transaction).id)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			k.putProducer(v.Bytes(), transaction)
			return
		}
		for i := range v.Len() {
			k.translate(v.Index(i), group, transaction)
		}
	case reflect.Struct:
		k.translateStruct(v, group, transaction)
	}
}

func (k *known) translateStruct(v reflect.Value, group, transaction string) {
	for i := range v.NumField() {
		switch f := v.Field(i); v.Type().Field(i).Name {
		case "Group":
			group = f.String()
		case "TransactionalID", "TransactionID":
			transaction = reflect.Indirect(f).String()
			if f.Kind() == reflect.Pointer && f.IsNil() {
				transaction = ""
			}
		}
	}
	for i := range v.NumField() {
		switch f := v.Field(i); v.Type().Field(i).Name {
		case "Version", "UnknownTags":
		case "Generation":
			if d := f.Int() - generationSymbol; -near < d && d < near {
				f.SetInt(int64(k.generations[group]) + d)
			}
		case "ProducerEpoch":
			if d := f.Int() - epochSymbol; -near < d && d < near {
				f.SetInt(int64(k.producer(transaction).epoch) + d)
			}
		default:
			k.translate(f, group, transaction)
		}
	}
}

func (k *known) producer(transaction string) producer {
	if p, ok := k.producers[transaction]; ok {
		return p
	}
	return k.last
}

func (k *known) putTopic(v reflect.Value) {
	id := v.Interface().([16]byte)
	name, ok := strings.CutPrefix(strings.TrimRight(string(id[:]), "\x00"), topicMark)
	if !ok {
		return
	}
	var real [16]byte
	if copy(real[:], neverATopic); k.topics[name] != [16]byte{} {
		real = k.topics[name]
	}
	v.Set(reflect.ValueOf(real))
}

// putProducer replaces the symbols in the header of a batch, and makes its checksum right again.
func (k *known) putProducer(batch []byte, transaction string) {
	if len(batch) < smallestBatch || batch[magicAt] != 2 || int64(binary.BigEndian.Uint64(batch[producerAt:])) != producerSymbol {
		return
	}
	p := k.producer(transaction)
	binary.BigEndian.PutUint64(batch[producerAt:], uint64(p.id))
	epoch := int16(binary.BigEndian.Uint16(batch[epochAt:]))
	if d := epoch - epochSymbol; -near < d && d < near {
		binary.BigEndian.PutUint16(batch[epochAt:], uint16(p.epoch+d))
	}
	binary.BigEndian.PutUint32(batch[checksumAt:], crc32.Checksum(batch[checkedAt:], crc32.MakeTable(crc32.Castagnoli)))
}

// learn keeps what an answer tells.
func (k *known) learn(req kmsg.Request, resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		group := req.(*kmsg.JoinGroupRequest).Group
		if r.MemberID != "" {
			k.members[group] = r.MemberID
			if _, ok := k.everyone[r.MemberID]; !ok && len(r.MemberID) > 36 {
				k.everyone[r.MemberID] = memberMark + group
			}
		}
		if r.ErrorCode == 0 {
			k.generations[group] = r.Generation
		}
	case *kmsg.InitProducerIDResponse:
		if r.ErrorCode == 0 {
			id := ""
			if given := req.(*kmsg.InitProducerIDRequest).TransactionalID; given != nil {
				id = *given
			}
			k.last = producer{r.ProducerID, r.ProducerEpoch}
			k.producers[id] = k.last
		}
	case *kmsg.MetadataResponse:
		for _, t := range r.Topics {
			if t.Topic != nil {
				k.learnTopic(*t.Topic, t.TopicID)
			}
		}
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.Topics {
			k.learnTopic(t.Topic, t.TopicID)
		}
	}
}

func (k *known) learnTopic(name string, id [16]byte) {
	if id != [16]byte{} {
		k.names[id] = name
		k.topics[name[:min(len(name), longest)]] = id
	}
}
