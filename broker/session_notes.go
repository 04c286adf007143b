package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
	"barnabas/zkstate"
)

const (
	noteFile = ".zookeeper-session"
	bootFile = "/proc/sys/kernel/random/boot_id" // on Linux; elsewhere there are no notes
)

// sessionNotes keeps the notes in the log directories up to date and obeys those of a predecessor. What goes wrong costs the next start the wait for a session's timeout, and nothing else.
type sessionNotes struct {
	identity
	zk   *zkstate.Client
	fs   vfs.FS
	boot string // "": this system does not tell
	log  *logrus.Entry

	left int64 // session of the last note
}

func newSessionNotes(zk *zkstate.Client, fs vfs.FS, id identity, log *logrus.Entry) *sessionNotes {
	boot, _ := os.ReadFile(bootFile)
	return &sessionNotes{identity: id, zk: zk, fs: fs, boot: strings.TrimSpace(string(boot)), log: log}
}

// endPredecessor ends the session of the process that was killed on these directories, which are locked. It comes before anything is read in them: what has to be recovered may take long, and
// meanwhile others can be elected.
func (s *sessionNotes) endPredecessor(ctx context.Context, dirs []commitlog.DirInfo) {
	registered, err := s.zk.One(ctx, zkstate.Exists(zkstate.BrokerIDPath(s.brokerID)))
	if err != nil {
		if !errors.Is(err, zkstate.ErrNoNode) {
			s.log.WithError(err).Warn("finding out who is registered as this broker")
		}
		return
	}
	for _, dir := range dirs {
		note, err := s.read(dir.Path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.log.WithError(err).Infof("the note about a session in %s is not used", dir.Path)
			}
			continue
		}
		if !note.tellsOfPredecessor(vantage{boot: s.boot, lock: dir.Lock, broker: s.brokerID, cluster: s.clusterID, holder: registered.Stat.EphemeralOwner}) {
			continue
		}
		entry := s.log.WithField("session", fmt.Sprintf("0x%x", uint64(note.key.ID)))
		ended, err := s.zk.EndSession(ctx, note.key)
		switch {
		case err != nil:
			entry.WithError(err).Warn("this broker was killed, and the ZooKeeper session of its life before could not be ended: it has to be waited for")
		case ended:
			entry.Info("this broker was killed: the ZooKeeper session of its life before is ended")
		}
		return // the others name the same session
	}
}

// leave notes the session that this broker is registered in. A directory that has no lock proves nothing to a successor.
func (s *sessionNotes) leave(dirs []commitlog.DirInfo, session int64) {
	key, known := s.zk.SessionKey(session)
	if s.boot == "" || !known {
		return
	}
	s.left = key.ID
	for _, dir := range dirs {
		if dir.Err != nil || dir.Lock == "" {
			continue
		}
		note := sessionNote{boot: s.boot, lock: dir.Lock, broker: s.brokerID, cluster: s.clusterID, key: key}
		if err := s.write(dir.Path, note); err != nil {
			s.log.WithError(err).Warnf("no note about the ZooKeeper session can be left in %s: after a kill the next start has to wait for the session's timeout", dir.Path)
		}
	}
}

// remove takes back what was left, once the session is closed. The directories may already be another process's: its notes stay.
func (s *sessionNotes) remove(dirs []commitlog.DirInfo) {
	for _, dir := range dirs {
		if dir.Err != nil {
			continue
		}
		if note, err := s.read(dir.Path); err == nil && note.key.ID == s.left {
			_ = s.fs.Remove(filepath.Join(dir.Path, noteFile)) // one that stays names a session that is over
		}
	}
}

func (s *sessionNotes) read(dir string) (sessionNote, error) {
	path := filepath.Join(dir, noteFile)
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return sessionNote{}, err
	}
	defer f.Close()
	if f.Size() > maxNote {
		return sessionNote{}, fmt.Errorf("%s: %d bytes are too many", path, f.Size())
	}
	data := make([]byte, f.Size())
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return sessionNote{}, err
	}
	note, err := decodeSessionNote(data)
	if err != nil {
		return note, fmt.Errorf("%s: %w", path, err)
	}
	return note, nil
}

// write replaces the note. It is not synced: after a power cut it counts for nothing anyway.
func (s *sessionNotes) write(dir string, note sessionNote) error {
	data, err := note.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, noteFile)
	fresh := path + ".tmp"
	f, err := s.fs.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600) // who reads it can speak for the session
	if err != nil {
		return err
	}
	if err := errors.Join(f.Append(data), f.Close()); err != nil {
		return err
	}
	return s.fs.Rename(fresh, path)
}
