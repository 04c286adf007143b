package api

// The topics that the coordinators keep their state in. Clients cannot write to
// them.
const (
	offsetsTopic      = "__consumer_offsets"
	transactionsTopic = "__transaction_state"
)

// isInternal tells whether a topic belongs to the brokers.
func isInternal(topic string) bool { return topic == offsetsTopic || topic == transactionsTopic }

const maxTopicName = 249

// validTopicName is Kafka's rule: 1 to 249 of letters, digits, '.', '_' and
// '-', and neither "." nor "..".
func validTopicName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > maxTopicName {
		return false
	}
	for i := 0; i < len(name); i++ {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '.', b == '_', b == '-':
		default:
			return false
		}
	}
	return true
}

func stringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
