package commitlog

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
)

// renameFS calls before for each file that is to get another name.
type renameFS struct {
	vfs.FS
	before func(from string)
}

func (r *renameFS) Rename(from, to string) error {
	if r.before != nil {
		r.before(from)
	}
	return r.FS.Rename(from, to)
}

// Files are written under a name of their own and renamed. A directory that gets its last name in between must not be taken for a disk that fails: the broker
// would lose every replica on it because one was moved away.
func TestALogThatIsDeletedWhileAFileOfItIsWrittenTakesNoDirectoryOffline(t *testing.T) {
	for name, write := range map[string]func(o *opened, l *Log){
		"the epochs by the housekeeper": func(o *opened, _ *Log) { o.flushEpochs() },
		"the id of its topic":           func(_ *opened, l *Log) { _ = l.SetTopicID(TopicID{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			disk, clock := &renameFS{FS: vfs.NewCrashFS()}, newClock()
			o := openManager(t, disk, smallConfig(), clock, "/data")
			l := o.log()
			produce(t, l, batchSpec{count: 1, size: 10})
			require.NoError(t, l.Flush())
			require.NoError(t, l.AssignEpochStart(7, l.EndOffset()))

			deleted := make(chan error, 1)
			disk.before = func(from string) {
				if filepath.Ext(from) != temporarySuffix {
					return
				}
				disk.before = nil
				go func() { deleted <- o.Delete(tp0) }()
				select {
				case err := <-deleted: // it did not wait for the file
					deleted <- err
				case <-time.After(50 * time.Millisecond): // it waits
				}
			}
			write(o, l)
			require.NoError(t, <-deleted)
			for _, d := range o.Dirs() {
				require.NoError(t, d.Err)
			}
			require.NoError(t, o.log().Err(), "a log of its name is made anew")
		})
	}
}
