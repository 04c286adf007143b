package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// dump lists a tree as text: directories, and files with their bytes.
func dump(t *testing.T, c *CrashFS, name string) string {
	t.Helper()
	entries, err := c.ReadDir(name)
	require.NoError(t, err)
	var s strings.Builder
	for _, e := range entries {
		child := path.Join(name, e.Name())
		if e.IsDir() {
			fmt.Fprintf(&s, "%s/\n%s", child, dump(t, c, child))
		} else {
			fmt.Fprintf(&s, "%s=%q\n", child, read(t, c, child))
		}
	}
	return s.String()
}

func write(t *testing.T, fs FS, name, data string) File {
	t.Helper()
	f := open(t, fs, name)
	require.NoError(t, f.Append([]byte(data)))
	return f
}

// outcomes is the set of disks that an adversary makes of a history, over many seeds.
func outcomes(t *testing.T, c *CrashFS, a Adversary) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for seed := range uint64(200) {
		out[dump(t, c.Image(c.Ops(), a, seed), "/")] = true
	}
	return out
}

func keys(lines ...string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lines {
		m[l] = true
	}
	return m
}

func TestOnlyWhatWasSyncedIsSureToSurvive(t *testing.T) {
	c := NewCrashFS()
	f := write(t, c, "/a", "one")
	require.Empty(t, dump(t, c.Image(c.Ops(), Synced, 0), "/"), "neither name nor bytes")
	require.NoError(t, f.Sync())
	require.Empty(t, dump(t, c.Image(c.Ops(), Synced, 0), "/"), "the name is not synced")
	require.NoError(t, c.SyncDir("/"))
	require.NoError(t, f.Append([]byte("two")))
	for _, a := range Adversaries {
		for seed := range uint64(50) {
			got := dump(t, c.Image(c.Ops(), a, seed), "/")
			require.True(t, strings.HasPrefix(got, `/a="one`), "%s: %s", a, got)
		}
	}
	require.Equal(t, keys("/a=\"one\"\n"), outcomes(t, c, Synced))
	require.Equal(t, keys("/a=\"onetwo\"\n"), outcomes(t, c, Everything))
	require.Equal(t, keys("/a=\"one\"\n", "/a=\"onetwo\"\n"), outcomes(t, c, Prefix))
	require.Equal(t, keys("/a=\"one\\x00\\x00\\x00\"\n"), outcomes(t, c, ZeroFilled))
	require.Equal(t, keys("/a=\"one\"\n"), outcomes(t, c, NamesOnly))
	pages := outcomes(t, c, Pages)
	require.Equal(t, keys("/a=\"one\"\n", "/a=\"onetwo\"\n", "/a=\"one\\x00\\x00\\x00\"\n"), pages)
}

func TestReplacingAFileWithoutSyncMayLeaveItEmpty(t *testing.T) {
	c := NewCrashFS()
	f := write(t, c, "/x", "old")
	require.NoError(t, f.Sync())
	require.NoError(t, c.SyncDir("/"))
	write(t, c, "/x.tmp", "new")
	require.NoError(t, c.Rename("/x.tmp", "/x"))
	require.True(t, outcomes(t, c, NamesOnly)["/x=\"\"\n"])
	require.True(t, outcomes(t, c, Synced)["/x=\"old\"\n"])

	// the right order: bytes first, then the name
	c = c.Image(c.Ops(), Synced, 0)
	n := write(t, c, "/x.tmp", "new")
	require.NoError(t, n.Sync())
	require.NoError(t, c.Rename("/x.tmp", "/x"))
	require.NoError(t, c.SyncDir("/"))
	for _, a := range Adversaries {
		for cut := range c.Ops() + 1 {
			for seed := range uint64(20) {
				got := read(t, c.Image(cut, a, seed), "/x")
				require.True(t, got == "old" || got == "new", "%s at %d: %q", a, cut, got)
			}
		}
		require.Equal(t, "new", read(t, c.Image(c.Ops(), a, 1), "/x"))
	}
}

func TestNamesInADirectoryAreLostFromTheEnd(t *testing.T) {
	c := NewCrashFS()
	for _, n := range []string{"/a", "/b", "/c"} {
		open(t, c, n)
	}
	require.NoError(t, c.Remove("/a"))
	want := keys("", "/a=\"\"\n", "/a=\"\"\n/b=\"\"\n", "/a=\"\"\n/b=\"\"\n/c=\"\"\n", "/b=\"\"\n/c=\"\"\n")
	require.Equal(t, want, outcomes(t, c, Prefix))
	require.Equal(t, want, outcomes(t, c, Pages))
}

func TestADirectoryThatIsLostTakesWhatItHolds(t *testing.T) {
	c := NewCrashFS()
	require.NoError(t, c.MkdirAll("/d/e", 0o755))
	f := write(t, c, "/d/e/f", "x")
	require.NoError(t, f.Sync())
	require.NoError(t, c.SyncDir("/d/e"))
	require.NoError(t, c.SyncDir("/d"))
	require.Empty(t, dump(t, c.Image(c.Ops(), Synced, 0), "/"))
	require.NoError(t, c.SyncDir("/"))
	require.Equal(t, "/d/\n/d/e/\n/d/e/f=\"x\"\n", dump(t, c.Image(c.Ops(), Synced, 0), "/"))
}

func TestARenameAcrossDirectoriesIsDurableWithBoth(t *testing.T) {
	c := NewCrashFS()
	require.NoError(t, c.MkdirAll("/from", 0o755))
	require.NoError(t, c.MkdirAll("/to", 0o755))
	open(t, c, "/from/f")
	for _, d := range []string{"/", "/from"} {
		require.NoError(t, c.SyncDir(d))
	}
	require.NoError(t, c.Rename("/from/f", "/to/f"))
	before, after := "/from/\n/from/f=\"\"\n/to/\n", "/from/\n/to/\n/to/f=\"\"\n"
	require.Equal(t, keys(before), outcomes(t, c, Synced))
	require.Equal(t, keys(before, after), outcomes(t, c, Prefix))
	require.NoError(t, c.SyncDir("/to"))
	require.Equal(t, keys(before), outcomes(t, c, Synced))
	require.NoError(t, c.SyncDir("/from"))
	require.Equal(t, keys(after), outcomes(t, c, Synced))
}

func TestATornWriteLosesSectorsAndAPageWriteLosesPages(t *testing.T) {
	c := NewCrashFS()
	f := open(t, c, "/f")
	require.NoError(t, c.SyncDir("/"))
	old := strings.Repeat("o", 3*pageSize)
	require.NoError(t, f.Append([]byte(old)))
	require.NoError(t, f.Sync())
	_, err := f.WriteAt([]byte(strings.Repeat("n", 3*pageSize)), 0)
	require.NoError(t, err)
	mixtures := func(a Adversary, unit int) (mixed bool) {
		for seed := range uint64(100) {
			got := read(t, c.Image(c.Ops(), a, seed), "/f")
			require.Len(t, got, len(old))
			for at := 0; at < len(got); at += unit {
				part := got[at : at+unit]
				require.True(t, part == strings.Repeat("o", unit) || part == strings.Repeat("n", unit))
			}
			mixed = mixed || strings.Contains(got, "on") || strings.Contains(got, "no")
		}
		return mixed
	}
	require.True(t, mixtures(Torn, sectorSize))
	require.True(t, mixtures(Pages, pageSize))
}

func TestATruncationThatWasNotSyncedMayComeBack(t *testing.T) {
	c := NewCrashFS()
	f := write(t, c, "/f", "abcdef")
	require.NoError(t, f.Sync())
	require.NoError(t, c.SyncDir("/"))
	require.NoError(t, f.Truncate(3))
	require.NoError(t, f.Append([]byte("X")))
	got := outcomes(t, c, Prefix)
	require.Equal(t, keys("/f=\"abcdef\"\n", "/f=\"abc\"\n", "/f=\"abcX\"\n"), got)
	require.True(t, outcomes(t, c, Pages)["/f=\"abcd\"\n"], "the new size over the old bytes")
}

func TestAFailedSyncLosesTheBytesForGood(t *testing.T) {
	c := NewCrashFS()
	f := write(t, c, "/f", "one")
	require.NoError(t, f.Sync())
	require.NoError(t, c.SyncDir("/"))
	require.NoError(t, f.Append([]byte("two")))
	c.Inject(func(o Op) error {
		if o.Kind == OpSync {
			return syscall.EIO
		}
		return nil
	})
	require.ErrorIs(t, f.Sync(), syscall.EIO)
	c.Inject(nil)
	require.Equal(t, "onetwo", read(t, c, "/f"), "programs still see them")
	require.NoError(t, f.Append([]byte("three")))
	require.NoError(t, f.Sync(), "and the next sync claims success")
	require.Equal(t, "/f=\"one\\x00\\x00\\x00three\"\n", dump(t, c.Image(c.Ops(), Everything, 0), "/"))
}

func TestAFullDiskRefusesAWholeAppend(t *testing.T) {
	c := NewCrashFS()
	f := write(t, c, "/f", "one")
	c.Inject(func(o Op) error {
		if o.Kind == OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	require.ErrorIs(t, f.Append([]byte("twotwo")), syscall.ENOSPC)
	require.Equal(t, int64(3), f.Size())
	require.Equal(t, "one", read(t, c, "/f"))
	history := c.History(c.Ops() - 2)
	require.Equal(t, "[write /f 3+3 truncate /f 3]", fmt.Sprint(history), "half was written and taken back")

	c.Inject(FailAt(c.Ops(), syscall.EIO)) // now even that fails
	err := f.Append([]byte("twotwo"))
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, "could not be taken back")
	require.Equal(t, "onetwo", read(t, c, "/f"))
	_, err = c.OpenFile("/g", os.O_CREATE|os.O_RDWR, 0o644)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, c.Rename("/f", "/g"), syscall.EIO)
	require.ErrorIs(t, c.SyncDir("/"), syscall.EIO)
	require.Equal(t, "/f=\"onetwo\"\n", dump(t, c, "/"))
}

// Random histories: every image of a history agrees with what must hold of it whatever the adversary, the same seed
// gives the same image, and images can be worked on and crashed again.
func TestImagesOfRandomHistories(t *testing.T) {
	images := 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 2))
		c := NewCrashFS()
		for round := range 3 {
			mutate(t, c, rng, 40)
			for range 12 {
				cut := rng.IntN(c.Ops() + 1)
				a := Adversaries[rng.IntN(len(Adversaries))]
				s := rng.Uint64()
				im := c.Image(cut, a, s)
				require.Equal(t, dump(t, im, "/"), dump(t, c.Image(cut, a, s), "/"))
				require.Equal(t, dump(t, im, "/"), dump(t, im.Image(0, Synced, 0), "/"), "what is on a disk at its mounting is durable")
				images++
			}
			require.Equal(t, dump(t, c, "/"), dump(t, c.Image(c.Ops(), Everything, 0), "/"), "a killed process loses nothing")
			syncAll(t, c, "/")
			for _, a := range Adversaries {
				require.Equal(t, dump(t, c, "/"), dump(t, c.Image(c.Ops(), a, seed), "/"), "%s: all was synced", a)
			}
			c = c.Image(c.Ops(), Adversaries[round], seed)
		}
	}
	t.Logf("%d images", images)
}

func mutate(t *testing.T, c *CrashFS, rng *rand.Rand, steps int) {
	t.Helper()
	names := []string{"/a", "/b", "/d/a", "/d/b", "/d/e/a"}
	require.NoError(t, c.MkdirAll("/d/e", 0o755))
	for range steps {
		name := names[rng.IntN(len(names))]
		switch rng.IntN(8) {
		case 0:
			if err := c.Rename(name, names[rng.IntN(len(names))]); err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		case 1:
			if err := c.Remove(name); err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		case 2:
			require.NoError(t, c.SyncDir(path.Dir(name)))
		default:
			f := open(t, c, name)
			switch rng.IntN(4) {
			case 0:
				require.NoError(t, f.Truncate(rng.Int64N(6000)))
			case 1:
				require.NoError(t, f.Sync())
			default:
				require.NoError(t, f.Append([]byte(strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(5000)))))
			}
		}
	}
}

func syncAll(t *testing.T, c *CrashFS, dir string) {
	t.Helper()
	entries, err := c.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		child := path.Join(dir, e.Name())
		if e.IsDir() {
			syncAll(t, c, child)
		} else {
			require.NoError(t, open(t, c, child).Sync())
		}
	}
	require.NoError(t, c.SyncDir(dir))
}

func TestAnErrorToldByInjectIsNotMistakenForSuccess(t *testing.T) {
	c := NewCrashFS()
	f := write(t, c, "/f", "one")
	broken := errors.New("broken")
	c.Inject(func(Op) error { return broken })
	_, err := f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, f.Truncate(0), broken)
	require.ErrorIs(t, f.Sync(), broken)
	require.ErrorIs(t, c.Remove("/f"), broken)
	require.ErrorIs(t, c.RemoveAll("/f"), broken)
	require.ErrorIs(t, c.MkdirAll("/x/y", 0o755), broken)
	require.Equal(t, "/f=\"one\"\n", dump(t, c, "/"))
}
