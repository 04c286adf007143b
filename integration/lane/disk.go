package lane

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fill writes a file until its disk has no room for another byte.
func Fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for size := len(zeros); size > 0; {
		if _, err := f.Write(zeros[:size]); err != nil {
			size /= 2
		}
	}
}
