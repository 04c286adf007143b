package native

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWhatWasNotAcknowledgedIsNotCalledProduced(t *testing.T) {
	begin := func() *sending {
		s := newSending(&producedDocument{Topic: "t", Partitions: map[string]int64{}}, func() {})
		s.send()
		s.send()
		s.done(&kgo.Record{Partition: 3}, nil)
		return s
	}
	end := func(s *sending, ended, bad error) (*producedDocument, error) {
		t.Helper()
		s.idle.Stop()
		d, err := s.end(ended, bad)
		require.IsType(t, &producedDocument{}, d)
		return d.(*producedDocument), err
	}
	s := begin()
	s.done(&kgo.Record{Partition: 3}, nil)
	d, err := end(s, nil, nil)
	require.NoError(t, err)
	assert.Equal(t, []any{2, 0, map[string]int64{"3": 2}}, []any{d.Records, d.Failed, d.Partitions})

	for _, c := range []struct {
		ended error
		want  Exit
	}{{errUntaken, Unreachable}, {context.Canceled, Failed}} {
		d, err := end(begin(), c.ended, c.ended)
		assert.Equal(t, c.want, exitOf(err))
		assert.Equal(t, []any{1, 1, c.ended.Error()}, []any{d.Records, d.Failed, *d.Error})
	}

	s = begin()
	s.done(&kgo.Record{}, kerr.MessageTooLarge)
	d, err = end(s, nil, s.failure())
	assert.Equal(t, Failed, exitOf(err))
	assert.Equal(t, []any{1, 1}, []any{d.Records, d.Failed})

	s = begin()
	s.done(&kgo.Record{}, nil)
	bad := errors.New("line 3: it is no row")
	_, err = end(s, nil, bad)
	assert.Equal(t, bad, err, "what cannot be read is told beside what was sent")
}

func TestLinesAreReadUntilThereIsNothingOrNobodyWantsThem(t *testing.T) {
	var got []string
	keep := func(_ int, line []byte) error { got = append(got, string(line)); return nil }
	require.NoError(t, lines(t.Context(), strings.NewReader("a\n\nb"), keep))
	assert.Equal(t, []string{"a", "", "b"}, got)

	bad := errors.New("no row")
	ctx, cancel := context.WithCancelCause(t.Context())
	assert.Equal(t, bad, lines(ctx, strings.NewReader("a\nb\n"), func(int, []byte) error { return bad }))
	cancel(nil) // lets go of what reads on

	silent, end := io.Pipe()
	defer end.Close()
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(errUntaken)
	assert.Equal(t, errUntaken, lines(ctx, silent, keep), "nobody waits for a line that does not come")
}
