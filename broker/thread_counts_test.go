package broker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/config"
)

func TestThreadCountsChangeByAFactorOfTwoAtATime(t *testing.T) {
	with := func(settings ...string) *config.Values {
		set := map[string]string{}
		for i := 0; i < len(settings); i += 2 {
			set[settings[i]] = settings[i+1]
		}
		v, err := config.New(set)
		require.NoError(t, err)
		return v
	}
	for _, c := range []struct{ name, now, then, refusal string }{
		{"num.io.threads", "8", "16", ""},
		{"num.io.threads", "8", "4", ""},
		{"num.io.threads", "8", "17", "Dynamic thread count update validation failed for num.io.threads=17, value should not be greater than double the current value 8"},
		{"num.io.threads", "8", "3", "Dynamic thread count update validation failed for num.io.threads=3, value should be at least half the current value 8"},
		{"num.replica.fetchers", "1", "3", "Dynamic thread count update validation failed for num.replica.fetchers=3, value should not be greater than double the current value 1"},
		{"num.recovery.threads.per.data.dir", "1", "2", ""},
		{"background.threads", "10", "4", "Dynamic thread count update validation failed for background.threads=4, value should be at least half the current value 10"},
		{"log.cleaner.threads", "1", "2", ""},
		{"log.cleaner.threads", "2", "9", "Log cleaner threads cannot be increased to more than double the current value 2"},
		{"log.cleaner.threads", "4", "1", "Log cleaner threads cannot be reduced to less than half the current value 4"},
		{"num.replica.fetchers", "1", "0", "Dynamic thread count update validation failed for num.replica.fetchers=0, value should be at least 1"},
	} {
		err := checkThreadCounts(with(c.name, c.now), with(c.name, c.then))
		if c.refusal == "" {
			assert.NoError(t, err, "%s from %s to %s", c.name, c.now, c.then)
		} else {
			assert.EqualError(t, err, "org.apache.kafka.common.config.ConfigException: "+c.refusal)
		}
	}
}
