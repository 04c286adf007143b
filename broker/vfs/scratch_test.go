package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// content reads a whole file.
func content(t *testing.T, f FS, name string) string {
	t.Helper()
	h, err := f.OpenFile(name, os.O_RDONLY, 0)
	require.NoError(t, err)
	data := make([]byte, h.Size())
	n, err := h.ReadAt(data, 0)
	require.Equal(t, len(data), n, "%v", err)
	require.NoError(t, h.Close())
	return string(data)
}

func names(t *testing.T, f FS, dir string) (list []string) {
	t.Helper()
	entries, err := f.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAScratchLeavesWhatIsBeneathAsItWas(t *testing.T) {
	dir := t.TempDir()
	in := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	require.NoError(t, os.Mkdir(in("sub"), 0o755))
	for name, text := range map[string]string{in("a"): "0123456789", in("b"): "b", in("sub", "c"): "c"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	at := time.UnixMilli(1000)
	s := NewScratch(OS, func() time.Time { return at })

	a, err := s.OpenFile(in("a"), os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, a.Truncate(4))
	require.NoError(t, a.Append([]byte("xy"), []byte("z")))
	n, err := a.WriteAt([]byte("Y!"), 5)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	_, err = a.WriteAt([]byte("no"), 1)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.EqualValues(t, 7, a.Size())
	part := make([]byte, 3)
	_, err = a.ReadAt(part, 3)
	require.NoError(t, err)
	assert.Equal(t, "3xY", string(part), "over the seam")
	require.NoError(t, a.Close())
	assert.ErrorIs(t, a.Close(), fs.ErrClosed)
	assert.Equal(t, "0123xY!", content(t, s, in("a")))
	info, err := s.Stat(in("a"))
	require.NoError(t, err)
	assert.Equal(t, at, info.ModTime())

	require.NoError(t, s.Rename(in("a"), in("b")))
	assert.Equal(t, "0123xY!", content(t, s, in("b")))
	_, err = s.Stat(in("a"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Remove(in("b")))
	assert.ErrorIs(t, s.Remove(in("b")), fs.ErrNotExist)
	fresh, err := s.OpenFile(in("d"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	require.NoError(t, err)
	require.NoError(t, fresh.Truncate(2))
	require.NoError(t, fresh.Close())
	assert.Equal(t, "\x00\x00", content(t, s, in("d")))
	require.NoError(t, s.MkdirAll(in("e"), 0o755))
	assert.Equal(t, []string{"d", "e", "sub"}, names(t, s, dir))
	require.NoError(t, s.RemoveAll(in("sub")))
	_, err = s.OpenFile(in("sub", "c"), os.O_RDONLY, 0)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorIs(t, s.Rename(in("sub"), in("f")), fs.ErrNotExist)

	assert.Equal(t, []string{"a", "b", "sub"}, names(t, OS, dir))
	assert.Equal(t, "0123456789", content(t, OS, in("a")))
	assert.Equal(t, "b", content(t, OS, in("b")))
	assert.Equal(t, "c", content(t, OS, in("sub", "c")))
}

func TestAHeldLockIsSeenWithoutTakingIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), ".lock")
	is := func() bool {
		t.Helper()
		held, err := Held(name)
		require.NoError(t, err)
		return held
	}
	assert.False(t, is())
	assert.NoFileExists(t, name)
	lock, err := OS.Lock(name)
	require.NoError(t, err)
	assert.True(t, is())
	require.NoError(t, lock.Close())
	assert.False(t, is())
}
