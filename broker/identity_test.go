package broker

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tools that move replicas compare the directories they were given with those that the broker describes.
func TestLogDirectoriesAreNamedByTheirWholePath(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(here, "data", "a"), "/b"}, absolute([]string{"data/a/", "/b"}))
}
