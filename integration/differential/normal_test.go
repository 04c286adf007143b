package differential

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// normal is an answer as it is compared: what two brokers of the same kind would tell differently has a name in its place, or is left out.
//
//   - ThrottleMillis depends on time.
//   - Ids of topics, members and clusters are made of random numbers; a topic's is told as its name, a member's as the group that it was given for.
//   - Addresses, ports and directories are the side's own.
//   - The room on a disk, and when a transaction began, are told as whether they are known.
//   - Markers of transactions have the time at which they were written; records keep their own, which is long ago.
//   - The id of a fetch session is a random number.
//   - What a configuration key means is said in other words; it is compared whether it is said.
//   - Envelope, by which a KRaft broker hands requests on, is in Kafka's list of APIs and in nobody else's.
//   - The order of lists, where Kafka answers from a set or a map of Scala's, whose order nobody may rely on. Neither can a test: all lists are sorted.
const envelope = 58

func (s *side) normal(resp kmsg.Response) any {
	mask := strings.NewReplacer(s.masks()...)
	return s.value(reflect.ValueOf(resp).Elem(), "", mask)
}

// masks are what to say instead of what only one side says, old and new by turns.
func (s *side) masks() []string {
	_, port, _ := net.SplitHostPort(s.Addr)
	_, zkPort, _ := net.SplitHostPort(s.zookeeper)
	pairs := []string{s.Dir, "DIR", "127.0.0.1:" + port, "ADDRESS", "127.0.0.1:" + zkPort, "ZOOKEEPER"}
	for id, symbol := range s.known.everyone {
		pairs = append(pairs, id, symbol)
	}
	return pairs
}

func (s *side) value(v reflect.Value, field string, mask *strings.Replacer) any {
	switch field {
	case "TopicID":
		return s.topicName(v.Interface().([16]byte))
	case "ClusterID":
		return "CLUSTER"
	case "Port":
		if _, port, _ := net.SplitHostPort(s.Addr); strconv.Itoa(int(v.Int())) == port {
			return "PORT"
		}
	case "TotalBytes", "UsableBytes", "StartTimestamp":
		return v.Int() > 0
	case "SessionID":
		return v.Int() != 0
	case "Timestamp", "LastTimestamp":
		if v.Int() > firstTime+aDay {
			return "NOW"
		}
	case "RecordBatches":
		return fmt.Sprintf("%q", withoutMarkerTimes(slices.Clone(v.Bytes())))
	case "Documentation":
		return !v.IsNil() && v.Elem().Len() > 0
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return s.value(v.Elem(), field, mask)
	case reflect.String:
		return mask.Replace(v.String())
	case reflect.Struct:
		return s.struc(v, mask)
	case reflect.Slice:
		return s.list(v, field, mask)
	}
	return v.Interface()
}

func (s *side) struc(v reflect.Value, mask *strings.Replacer) map[string]any {
	fields := map[string]any{}
	for i := range v.NumField() {
		switch f := v.Type().Field(i).Name; f {
		case "ThrottleMillis":
		case "UnknownTags":
			tags := v.Field(i).Interface().(kmsg.Tags)
			fields[f] = tags.Len()
		default:
			fields[f] = s.value(v.Field(i), f, mask)
		}
	}
	return fields
}

func (s *side) list(v reflect.Value, field string, mask *strings.Replacer) any {
	if v.IsNil() {
		return nil
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return fmt.Sprintf("%q", v.Bytes())
	}
	all := []any{}
	for i := range v.Len() {
		if api, ok := v.Index(i).Interface().(kmsg.ApiVersionsResponseApiKey); ok && api.ApiKey == envelope {
			continue
		}
		all = append(all, s.value(v.Index(i), field, mask))
	}
	slices.SortStableFunc(all, func(a, b any) int { return strings.Compare(about(a)+text(a), about(b)+text(b)) })
	return all
}

// about is what an element of a list is about, by which it finds its counterpart though they differ.
func about(v any) string {
	fields, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	var key strings.Builder
	for _, f := range []string{"Topic", "TopicID", "Partition", "ResourceType", "ResourceName", "Name", "Group", "TransactionalID", "ProducerID", "MemberID", "ApiKey", "Key", "User", "Feature", "Entity"} {
		if value, ok := fields[f]; ok {
			key.WriteString(text(value) + " ")
		}
	}
	return key.String()
}

func (s *side) topicName(id [16]byte) string {
	switch name, ok := s.known.names[id]; {
	case id == [16]byte{}:
		return ""
	case ok:
		return name
	case string(id[:len(neverATopic)]) == neverATopic:
		return neverATopic
	}
	return "UNKNOWN"
}

// withoutMarkerTimes clears what depends on time in the control batches of a set: two timestamps, and the checksum over them.
func withoutMarkerTimes(set []byte) []byte {
	for b := set; len(b) >= smallestBatch && b[magicAt] == 2; {
		size := 12 + int(binary.BigEndian.Uint32(b[8:]))
		if b[attributesAt+1]&control != 0 {
			clear(b[checksumAt:checkedAt])
			clear(b[timesAt:producerAt])
		}
		b = b[min(size, len(b)):]
	}
	return set
}

// text is a value in one line; maps come in the order of their keys.
func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// differences lists where two normal answers differ.
func differences(path string, kafka, ours any) []string {
	switch k := kafka.(type) {
	case map[string]any:
		if o, ok := ours.(map[string]any); ok {
			var all []string
			for _, f := range slices.Sorted(maps.Keys(k)) {
				all = append(all, differences(path+"."+f, k[f], o[f])...)
			}
			return all
		}
	case []any:
		if o, ok := ours.([]any); ok && len(k) == len(o) {
			var all []string
			for i := range k {
				all = append(all, differences(path+"["+strconv.Itoa(i)+"]", k[i], o[i])...)
			}
			return all
		}
	}
	if kt, ot := text(kafka), text(ours); kt != ot {
		return []string{fmt.Sprintf("%s: Kafka %s, Barnabas %s", path, kt, ot)}
	}
	return nil
}
