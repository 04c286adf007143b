// Package differential asks one broker of Apache Kafka and one of Barnabas the same, request by request, and compares what they answer field by field. The requests are made from a seed:
// fields are drawn from small pools in which valid values, slightly wrong ones and outright nonsense stand side by side, at every version that Kafka advertises, and stories give them a
// state worth asking about. What may differ is named in normal_test.go, and what is not asked, with the reason, in mend of values_test.go.
package differential
