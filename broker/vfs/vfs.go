// Package vfs is the seam between the storage engine and the disk.
//
// Everything the commit log does to a disk goes through FS and File, so that the same code runs over the operating
// system (OS) and over a file system in memory that forgets what was never synced (CrashFS).
//
// # What a caller may rely on
//
//   - Append adds whole writes or nothing: after an error the file ends where it ended before, or the error says that
//     even this could not be had.
//   - Bytes are on the disk after File.Sync; names (created, renamed, removed) are on the disk after FS.SyncDir of the
//     directory that holds them. Nothing else is promised to survive a power cut, in no order.
//   - ReadAt and Size may be called at any time from any goroutine; Append, WriteAt and Truncate of one handle need
//     one caller at a time.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// ErrLocked is returned (wrapped) by FS.Lock when another process, Barnabas or Apache Kafka, or another holder in this
// process has the lock.
var ErrLocked = errors.New("locked by another process")

// ErrFlag is returned by OpenFile for a flag that has no meaning here, such as os.O_APPEND.
var ErrFlag = errors.New("open flag not supported")

// openFlags are the flags that OpenFile understands. O_APPEND is not among them: the end of a file is what its handle
// tracks, so that a failed append can be taken back.
const openFlags = os.O_RDONLY | os.O_WRONLY | os.O_RDWR | os.O_CREATE | os.O_EXCL | os.O_TRUNC

// FS is a file system. Names are paths as the operating system writes them.
type FS interface {
	// OpenFile opens name with os.O_RDONLY, O_WRONLY or O_RDWR and any of O_CREATE, O_EXCL and O_TRUNC.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// Rename moves from to to and replaces a file of that name. Durable after SyncDir of both directories.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// RemoveAll deletes name and all below it; a name that does not exist is no error.
	RemoveAll(name string) error
	// MkdirAll makes a directory and its missing parents.
	MkdirAll(name string, perm fs.FileMode) error
	// ReadDir lists a directory in the order of names.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file or directory.
	Stat(name string) (fs.FileInfo, error)
	// SetModified gives a file the time of its last change, until the next change. Durable after Sync.
	SetModified(name string, at time.Time) error
	// SyncDir makes the names of a directory durable.
	SyncDir(dir string) error
	// Lock creates the file name if need be and takes an exclusive lock on it, or fails at once with ErrLocked. The
	// lock is released by Close or by the death of the process.
	Lock(name string) (Lock, error)
	// Space tells the size of the volume that holds dir and how much of it this process may still use, in bytes.
	Space(dir string) (total, usable int64, err error)
}

// Lock is a lock that is held.
type Lock interface {
	io.Closer
	// Identity tells the locked file from all others on this machine: while the lock is held, no other file can have the same. It is "" where the system does not tell.
	Identity() string
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Append writes the pieces, in order, at Size(), in a single write where the system can do it.
	Append(p ...[]byte) error
	// Truncate cuts or grows (with zeros) the file.
	Truncate(size int64) error
	// Reserve has the system keep room for the file to grow to size, where it can; the file's size stays as it is, and
	// nothing is promised. Truncate gives back what is behind the size.
	Reserve(size int64)
	// Sync makes the file's bytes and size durable, not its name.
	Sync() error
	// Size is where the next Append goes: the size of the file as this handle knows it, without a system call.
	Size() int64
	// Name is the name the file was opened by.
	Name() string
}

// OS is the file system of the operating system.
var OS FS = osFS{}
