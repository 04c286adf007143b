package ssl

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// golden reads a file of lines with fields between tabs.
func golden(t *testing.T, name string, fields int) [][]string {
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, row, fields, line)
		rows = append(rows, row)
	}
	require.NotEmpty(t, rows)
	return rows
}

func TestNamesAreWrittenAsJavaWritesThem(t *testing.T) {
	for _, row := range golden(t, "names.txt", 2) {
		der, err := hex.DecodeString(row[0])
		require.NoError(t, err)
		name, err := DistinguishedName(der)
		require.NoError(t, err)
		assert.Equal(t, strings.ReplaceAll(row[1], `\t`, "\t"), name)
	}
}

func TestRulesMapNamesAsKafkaDoes(t *testing.T) {
	for _, row := range golden(t, "rules.txt", 3) {
		name, want := "!", row[2]
		if m, err := ParseMapping(row[0]); err == nil {
			if mapped, err := m.Name(row[1]); err == nil {
				name = mapped
			}
		}
		assert.Equal(t, want, name, "%s of %s", row[0], row[1])
	}
}

func FuzzDistinguishedName(f *testing.F) {
	for _, seed := range []string{"300b3109300706035504031300", "300e310c300a06035504030403414243"} {
		der, _ := hex.DecodeString(seed)
		f.Add(der)
	}
	f.Fuzz(func(t *testing.T, der []byte) { _, _ = DistinguishedName(der) })
}

func FuzzMapping(f *testing.F) {
	f.Add(`RULE:^CN=(.*?),.*$/$1@${n}$0\x/L, DEFAULT`, "CN=a,O=b")
	f.Fuzz(func(t *testing.T, rules, name string) {
		if m, err := ParseMapping(rules); err == nil {
			_, _ = m.Name(name)
		}
	})
}
