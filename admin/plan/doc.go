// Package plan decides where replicas should be. It is pure: the same cluster gives the same plan, on every machine and in every run.
//
// A plan keeps what may stay. Of all assignments that are valid it takes one that, in this order,
//
//  1. spreads the replicas of each partition over the racks,
//  2. spreads the replicas of each topic, and then those of all topics, evenly over the brokers,
//  3. moves the fewest bytes, then the fewest replicas, and then takes leadership from the fewest brokers,
//
// and then chooses the first replica of each partition, which is its preferred leader, so that the leaders of each topic and of all topics are even, with the fewest changes.
//
// That is an even spread. The other goals (World) move only what they ask for: they vacate, replace or fill brokers, mend racks, even out leaders or bytes. A preview says what a plan does to each broker.
package plan
