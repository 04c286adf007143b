package javaregexp

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What java.util.regex.Matcher answers, where it answers at all.
func TestGroupsStandInReplacementsAsInJava(t *testing.T) {
	for _, c := range []struct {
		pattern, replacement, text, first, all string
	}{
		{"a(b*)", "<$1>", "abb-ab-a", "<bb>-ab-a", "<bb>-<b>-<>"},
		{"a(?<tail>b)", "${tail}!", "ab ab", "b! ab", "b! b!"},
		{"(a)(b)", "$2$1$0", "ab", "baab", "baab"},
		{"(a)", "$12", "a", "a2", "a2"},
		{"a", `\$1\\`, "a", `$1\`, `$1\`},
		{"(x)?a", "[$1]", "a", "[]", "[]"},
		{"z", "y", "abc", "abc", "abc"},
		{"", "-", "ab", "-ab", "-a-b-"},
	} {
		found := regexp.MustCompile(c.pattern)
		assert.NoError(t, CheckReplacement(found, c.replacement), c.replacement)
		assert.Equal(t, c.first, Replace(found, c.text, c.replacement, false), c.replacement)
		assert.Equal(t, c.all, Replace(found, c.text, c.replacement, true), c.replacement)
	}
}

func TestWhatJavaTakesForAMistakeIsFound(t *testing.T) {
	found := regexp.MustCompile("(?<name>a)")
	for replacement, stays := range map[string]string{"$2": "$2", "$": "$", "$x": "$x", `x\`: `x\`, "${other}": "", "${name": "${name"} {
		assert.Error(t, CheckReplacement(found, replacement), replacement)
		assert.Equal(t, stays, Replace(found, "a", replacement, true))
	}
}
