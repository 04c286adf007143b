// Package broker composes one broker of its parts, and starts and stops them in order.
//
// Starting: identity (who am I, in which cluster), listeners are bound so that a busy port is found before anything changes, logs are opened and recovered, requests are served, the
// broker registers in ZooKeeper, and only then may it become controller.
//
// Stopping: leaderships are handed over (controlled shutdown), connections are closed, followers stop, logs are flushed and marked clean. The ZooKeeper session, which belongs to the
// caller, ends last.
package broker
