package zkstate_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "barnabas/zkstate"
)

var example = regexp.MustCompile("(?m)^```znode\n(.*)\n(.*)\n```$")

func TestTheExamplesOfTheFormatPageAreWhatIsReadAndWritten(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	used := map[int]bool{}
	for _, m := range example.FindAllStringSubmatch(string(page), -1) {
		path, data := m[1], m[2]
		for i, f := range families(ACLSince3) {
			if f.path.MatchString(path) {
				b, err := f.reencode(path, []byte(data))
				require.NoError(t, err, path)
				assert.Equal(t, data, string(b), path)
				used[i] = true
				break
			}
		}
	}
	for i, f := range families(ACLSince3) {
		assert.True(t, used[i], "no example of %v", f.path)
	}
}
