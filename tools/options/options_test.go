package options

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var some = []Option{{Name: "list", Doc: "List."}, {Name: "topic", Arity: One, Value: "String: topic", Doc: "The topic, given at some length so that the text is wrapped."}, {Name: "config", Arity: Many, Value: "String: name=value"}, {Name: "state", Arity: Maybe, Value: "String"}, {Name: "partitions", Arity: One, Value: "Integer"}}

func TestFormsOfAnOptionAreTheSame(t *testing.T) {
	for _, args := range [][]string{{"--topic", "a"}, {"--topic=a"}, {"-topic", "a"}, {"word", "-topic=a", "other"}} {
		s, err := Parse(some, args)
		require.NoError(t, err)
		v, err := s.Value("topic")
		require.NoError(t, err)
		assert.Equal(t, "a", v)
		assert.False(t, s.Has("list"))
	}
}

func TestAnArgumentIsTakenWhateverItLooksLike(t *testing.T) {
	s, err := Parse(some, []string{"--topic", "--list"})
	require.NoError(t, err)
	v, _ := s.Value("topic")
	assert.Equal(t, "--list", v)
	s, err = Parse(some, []string{"--state", "--list"})
	require.NoError(t, err)
	assert.True(t, s.Has("state") && s.Has("list"))
	s, err = Parse(some, []string{"--state", "Empty"})
	require.NoError(t, err)
	assert.Equal(t, []string{"Empty"}, s.Values("state"))
}

func TestANumberThatMayBeMissingMayBeNegative(t *testing.T) {
	known := append(some, Option{Name: "period", Arity: MaybeNumber, Value: "Long"})
	for after, want := range map[string][]string{"-1": {"-1"}, "12": {"12"}, "--list": {}, "word": {}} {
		s, err := Parse(known, []string{"--period", after})
		require.NoError(t, err)
		assert.Equal(t, want, s.Values("period"), after)
		assert.Equal(t, after == "--list", s.Has("list"))
	}
	s, err := Parse(known, []string{"--period"})
	require.NoError(t, err)
	assert.True(t, s.Has("period"))
}

func TestErrorsHaveKafkasWords(t *testing.T) {
	_, err := Parse(some, []string{"--top", "a"})
	assert.EqualError(t, err, "top is not a recognized option")
	var unknown *UnknownError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, []string{"topic"}, unknown.Meant)
	_, err = Parse(some, []string{"--topic"})
	assert.EqualError(t, err, "Option topic requires an argument")
	s, err := Parse(some, []string{"--topic", "a", "--topic", "b", "--partitions", "y", "--config", "a=1", "--config", "b=2"})
	require.NoError(t, err)
	_, err = s.Value("topic")
	assert.EqualError(t, err, "Found multiple arguments for option topic, but you asked for only one")
	_, err = s.Int("partitions", 0)
	assert.EqualError(t, err, "Cannot parse argument 'y' of option partitions")
	assert.Equal(t, []string{"a=1", "b=2"}, s.Values("config"))
}

func TestHelpIsSortedAndWrapped(t *testing.T) {
	var out bytes.Buffer
	WriteHelp(&out, some)
	assert.Regexp(t, `(?s)--config <String: name=value>.*--list +List\..*--topic <String: topic> +The topic, given at some length so that\s+the text is wrapped\.`, out.String())
}

func TestWhatIsRequiredIsMarked(t *testing.T) {
	known := append([]Option{{Name: "id", Arity: One, Value: "String", Required: true, Doc: "Which."}}, some...)
	var out bytes.Buffer
	WriteHelp(&out, known)
	assert.Regexp(t, `^Option \(\* = required\) +Description +\n--------------------- +-----------`, out.String())
	assert.Contains(t, out.String(), "\n* --id <String>")
	s, err := Parse(known, []string{"--list"})
	require.NoError(t, err)
	assert.Equal(t, []string{"id"}, s.Lacking(known))
	s, err = Parse(known, []string{"--id", "x"})
	require.NoError(t, err)
	assert.Empty(t, s.Lacking(known))
}
