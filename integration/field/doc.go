// Package field turns the faults that users of Kafka, of its look-alikes and of its tools have reported into black-box tests, against whole brokers and by hand-made requests, since clients
// hide much. What is not ours alone is asked of Apache Kafka too, where its jars are: a test that the original fails is a wrong belief.
//
// A comment above each test names the report (BR-…) that it answers.
package field
