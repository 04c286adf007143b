package broker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate"
)

func TestASessionIsAPredecessorsOnlyIfEverythingFits(t *testing.T) {
	note := sessionNote{boot: "b1", lock: "8:17", broker: 3, cluster: "c", key: zkstate.SessionKey{ID: -5, Password: []byte("secret")}}
	fits := vantage{boot: "b1", lock: "8:17", broker: 3, cluster: "c", holder: -5}
	assert.True(t, note.tellsOfPredecessor(fits))
	for _, row := range []struct {
		name   string
		change func(*sessionNote, *vantage)
	}{
		{"a copied directory: another lock file", func(_ *sessionNote, v *vantage) { v.lock = "8:18" }},
		{"the same number on another volume", func(_ *sessionNote, v *vantage) { v.lock = "9:17" }},
		{"a clone on another machine, or a reboot", func(_ *sessionNote, v *vantage) { v.boot = "b2" }},
		{"another broker's directory", func(_ *sessionNote, v *vantage) { v.broker = 4 }},
		{"another cluster", func(_ *sessionNote, v *vantage) { v.cluster = "d" }},
		{"somebody else is registered: Apache Kafka ran here meanwhile, or a stranger has the id", func(_ *sessionNote, v *vantage) { v.holder = 6 }},
		{"nobody is registered", func(_ *sessionNote, v *vantage) { v.holder = 0 }},
		{"a note of no session, and nobody is registered", func(n *sessionNote, v *vantage) { n.key.ID, v.holder = 0, 0 }},
		{"no lock: the directory is offline", func(n *sessionNote, v *vantage) { n.lock, v.lock = "", "" }},
		{"a system that does not tell of its boots", func(n *sessionNote, v *vantage) { n.boot, v.boot = "", "" }},
	} {
		n, v := note, fits
		row.change(&n, &v)
		assert.False(t, n.tellsOfPredecessor(v), row.name)
	}
}

func TestANoteIsReadAsItWasWritten(t *testing.T) {
	for _, id := range []int64{1, 1 << 62, -1, -1 << 63, 0x100f1f0a5b30001} {
		note := sessionNote{boot: "4f1c", lock: "8:17", broker: 3, cluster: "Q4HgZECPSKKPg-sEGu3Ojw", key: zkstate.SessionKey{ID: id, Password: []byte{0, 1, 0xff}}}
		data, err := note.encode()
		require.NoError(t, err)
		back, err := decodeSessionNote(data)
		require.NoError(t, err)
		assert.Equal(t, note, back)
	}
	for _, bad := range []string{"", "null", "{", `{"version":2}`, `{"version":1,"session":"1g","password":""}`, `{"version":1,"session":"0x1ffffffffffffffff","password":""}`, `{"version":1,"session":"0x1","password":"xyz"}`} {
		_, err := decodeSessionNote([]byte(bad))
		assert.Error(t, err, bad)
		assert.NotContains(t, err.Error(), "xyz")
	}
}

func FuzzSessionNote(f *testing.F) {
	f.Add([]byte(`{"version":1,"boot":"4f1c","lock":"8:17","broker":3,"cluster":"c","session":"0x100f1f0a5b30001","password":"0001ff"}`))
	f.Add([]byte(`{"version":1,"session":"-1","password":"0"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		note, err := decodeSessionNote(data)
		if err != nil {
			return
		}
		again, err := note.encode()
		require.NoError(t, err)
		back, err := decodeSessionNote(again)
		require.NoError(t, err)
		require.Equal(t, note, back)
	})
}
