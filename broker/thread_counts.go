package broker

import (
	"fmt"

	"barnabas/config"
)

// threadCounts are settings that Kafka lets change by a factor of two at a time while a broker runs, lest a slip of the finger stops it. Who scales by scripts relies on being refused.
var threadCounts = []string{"num.io.threads", "num.network.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads"}

// checkThreadCounts refuses what is too far from now, in Kafka's words.
func checkThreadCounts(now, then *config.Values) error {
	const refused = "org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed for %s=%d, value should %s the current value %d"
	const tooFew = "org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed for %s=%d, value should be at least 1"
	for _, name := range threadCounts {
		switch n, m := now.Int(name), then.Int(name); {
		case m == n:
		case m < 1:
			return fmt.Errorf(tooFew, name, m)
		case m < n/2:
			return fmt.Errorf(refused, name, m, "be at least half", n)
		case m > n*2:
			return fmt.Errorf(refused, name, m, "not be greater than double", n)
		}
	}
	const cleaners = "org.apache.kafka.common.config.ConfigException: Log cleaner threads "
	switch n, m := now.Int("log.cleaner.threads"), then.Int("log.cleaner.threads"); {
	case m == n:
		return nil
	case m < n/2:
		return fmt.Errorf(cleaners+"cannot be reduced to less than half the current value %d", n)
	case m > n*2:
		return fmt.Errorf(cleaners+"cannot be increased to more than double the current value %d", n)
	}
	return nil
}
