package neighbours

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// One in 64 of the ids that Apache Kafka draws begins with a dash, and a port may be a part of any longer number.
func TestWhatTwoClustersDifferInIsMaskedWhateverIsDrawn(t *testing.T) {
	s := &scene{T: t, dir: "/scene", since: time.Now(), side: &side{places: strings.NewReplacer("/logs", "DIR"), ports: map[string]string{"15778": "11111"}}}
	assert.Equal(t, `{"id":"A-RANDOM-ID-OF-22-CHAR"} "A-RANDOM-ID-OF-22-CHAR", kafka-cluster-manager2`, s.mask(`{"id":"-qBc_GtdSpCcIdw3s-4R-A"} "5L6g3nShT-eMCtK--X86sw", kafka-cluster-manager2`))
	assert.Equal(t, "host:11111 DIR HERE 1577836800000", s.mask("host:15778 /logs /scene 1577836800000"))
}
