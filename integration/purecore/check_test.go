package purecore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// wanted reads the faults that a file announces in its "// want" comments.
func wanted(t *testing.T, file string) (faults []string) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for i, line := range strings.Split(string(data), "\n") {
		if _, wants, ok := strings.Cut(line, "// want "); ok {
			for want := range strings.SplitSeq(wants, "; ") {
				faults = append(faults, fmt.Sprintf("%s:%d: %s", filepath.Base(file), i+1, want))
			}
		}
	}
	return faults
}

func TestEveryForbiddenThingIsFound(t *testing.T) {
	faults, err := inspect(lane.Patience(t), "testdata/impure", nil)
	require.NoError(t, err)
	assert.Equal(t, wanted(t, "testdata/impure/impure.go"), faults)
	assert.NotEmpty(t, faults)
}

func TestWhatACoreMayDoIsNotBlamed(t *testing.T) {
	Check(t, "testdata/pure")
}

func TestACheckThatWouldLookAtNothingFails(t *testing.T) {
	_, err := inspect(lane.Patience(t), "testdata/pure", []string{"pure.go", "gone*.go"})
	assert.ErrorContains(t, err, "gone*.go")
}
