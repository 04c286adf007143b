package differential

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What an ordinary run compares: the seeds, and how much they must come to, lest the test pass by asking nothing.
const (
	ordinarySeeds   = "2-9"
	requestsOfASeed = 200
	leastRequests   = 1400
	leastVersions   = 220 // pairs of an API and a version
)

// seeds are those to ask. BARNABAS_DIFFERENTIAL_SEEDS=100-200 asks others than an ordinary run does.
func seeds(t *testing.T) (from, to int) {
	text := os.Getenv("BARNABAS_DIFFERENTIAL_SEEDS")
	if text == "" {
		text = ordinarySeeds
	}
	_, err := fmt.Sscanf(text, "%d-%d", &from, &to)
	require.NoError(t, err, "seeds are given as FROM-TO")
	return from, to
}

func TestAClientCannotTellThemApart(t *testing.T) {
	from, to := seeds(t)
	p := startPair(t)
	apis := map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, api := range do[*kmsg.ApiVersionsResponse](t, p.kafka, kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		apis[api.ApiKey] = api
	}
	for seed := from; seed <= to; seed++ {
		p.found = nil
		tell(newGenerator(seed, apis), requestsOfASeed, p.ask)
		assert.Empty(t, strings.Join(p.found, "\n"), "seed %d", seed)
	}
	requests := 0
	for _, n := range p.compared {
		requests += n
	}
	t.Logf("%d requests compared, of %d versions of APIs", requests, len(p.compared))
	seeds := to - from + 1
	assert.GreaterOrEqual(t, requests, min(leastRequests, seeds*requestsOfASeed))
	if requests >= leastRequests {
		assert.GreaterOrEqual(t, len(p.compared), leastVersions)
	}
}
