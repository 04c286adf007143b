package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLastWholeWordOfATestamentCounts(t *testing.T) {
	const first, second = `{"settings":{"zookeeper.connect":"a:1"},"session":7,"password":"AQI="}` + "\n", `{"settings":{"zookeeper.connect":"a:1"},"session":-8,"password":"Aw=="}` + "\n"
	for _, c := range []struct {
		name, told string
		session    int64
	}{
		{"nothing", "", 0},
		{"one session", first, 7},
		{"another after it", first + second, -8},
		{"one that was cut short", first + second[:20], 7},
		{"one without its end of line", first + strings.TrimSuffix(second, "\n"), 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			last, err := awaitEnd(strings.NewReader(c.told))
			require.NoError(t, err)
			require.Equal(t, c.session, last.Session)
		})
	}
	_, err := awaitEnd(strings.NewReader("nonsense\n"))
	require.Error(t, err)
	require.NoError(t, testament{}.execute(), "a broker that never had a session leaves nothing to be done")
}
