package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"
)

// CrashFS is a file system in memory that models the page cache and the journal of a real one: what is written,
// truncated, created, renamed or removed is seen at once, but is on the disk only after Sync or SyncDir. It keeps the
// history of all it did, and Image builds the disk as a power cut at any point of it may have left it.
//
// Inject makes operations fail, as a full or broken disk does.
//
// CrashFS agrees with OS in what calls return (crash_test.go compares the two); permissions, links and times are not
// modelled.
type CrashFS struct {
	mu     sync.Mutex
	base   *tree // the disk when this file system was mounted
	now    *tree // as programs see it
	ops    []change
	locks  map[string]bool
	inject func(Op) error
}

// NewCrashFS makes an empty file system. Relative names lie below /.
func NewCrashFS() *CrashFS { return mount(newTree()) }

func mount(disk *tree) *CrashFS {
	return &CrashFS{base: disk, now: disk.clone(), locks: map[string]bool{}}
}

// OpKind is what an operation does to the disk.
type OpKind int

// The operations that change a disk or make changes durable. One call may be several of them: MkdirAll, RemoveAll, and
// Append that takes back what it wrote.
const (
	OpCreate OpKind = iota
	OpMkdir
	OpWrite
	OpTruncate
	OpRename
	OpRemove
	OpSync
	OpSyncDir
)

var opNames = [...]string{"create", "mkdir", "write", "truncate", "rename", "remove", "sync", "syncdir"}

func (k OpKind) String() string { return opNames[k] }

// Op describes an operation, for History and Inject.
type Op struct {
	Index  int // number of operations before it
	Kind   OpKind
	Name   string
	To     string // of OpRename
	Offset int64  // of OpWrite; the size for OpTruncate
	Length int    // of OpWrite
	Failed bool   // it was made to fail
}

func (o Op) String() string {
	switch o.Kind {
	case OpRename:
		return fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.To)
	case OpWrite:
		return fmt.Sprintf("%s %s %d+%d", o.Kind, o.Name, o.Offset, o.Length)
	case OpTruncate:
		return fmt.Sprintf("%s %s %d", o.Kind, o.Name, o.Offset)
	}
	return fmt.Sprintf("%s %s", o.Kind, o.Name)
}

// Ops is the number of operations so far: the last point where Image can cut.
func (c *CrashFS) Ops() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ops)
}

// History lists the operations from number from on.
func (c *CrashFS) History(from int) []Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Op, 0, len(c.ops)-from)
	for _, o := range c.ops[from:] {
		out = append(out, o.Op)
	}
	return out
}

// Inject sets a function that is asked before each operation; what it returns, if not nil, is the operation's error and
// the operation does nothing. There are two exceptions. A write that fails has written half of its bytes. A sync that
// fails has lost the bytes it was asked for: programs still read them, but no later sync puts them on the disk (this is
// what Linux does: the pages are marked clean). nil ends the injection. f must not call the file system.
func (c *CrashFS) Inject(f func(Op) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inject = f
}

// FailAt makes operation number k, counted as Op.Index, and all later ones fail with err.
func FailAt(k int, err error) func(Op) error {
	return func(o Op) error {
		if o.Index >= k {
			return err
		}
		return nil
	}
}

// do records and applies one operation. The caller holds mu.
func (c *CrashFS) do(o change) error {
	o.Index = len(c.ops)
	if c.inject != nil {
		if err := c.inject(o.Op); err != nil {
			o.Failed = true
			if o.Kind == OpWrite {
				o.data = o.data[:len(o.data)/2]
				o.Length = len(o.data)
				c.now.apply(&o)
			}
			if o.Kind == OpWrite || o.Kind == OpSync {
				c.ops = append(c.ops, o)
			}
			return &fs.PathError{Op: o.Kind.String(), Path: o.Name, Err: err}
		}
	}
	c.now.apply(&o)
	c.ops = append(c.ops, o)
	return nil
}

func abs(name string) string { return path.Clean("/" + filepath.ToSlash(name)) }

func (c *CrashFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := func(err error) (File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	if flag&^openFlags != 0 {
		return fail(ErrFlag)
	}
	dir, base, err := c.now.parent(abs(name))
	if err != nil {
		return fail(err)
	}
	id, exists := c.now.lookup(dir, base)
	switch {
	case !exists && flag&os.O_CREATE == 0:
		return fail(fs.ErrNotExist)
	case exists && flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		return fail(fs.ErrExist)
	case exists && c.now.nodes[id].dir:
		return fail(errIsDir)
	}
	if !exists {
		id = c.now.next
		if err := c.do(change{Op: Op{Kind: OpCreate, Name: name}, dir: dir, base: base, node: id}); err != nil {
			return nil, err
		}
	} else if flag&os.O_TRUNC != 0 && len(c.now.nodes[id].data) > 0 {
		if err := c.do(change{Op: Op{Kind: OpTruncate, Name: name}, node: id}); err != nil {
			return nil, err
		}
	}
	access := flag & (os.O_WRONLY | os.O_RDWR)
	return &crashFile{c: c, name: name, node: id, end: int64(len(c.now.nodes[id].data)),
		reads: access != os.O_WRONLY, writes: access != os.O_RDONLY}, nil
}

func (c *CrashFS) Rename(from, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := func(err error) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: err} }
	fromDir, fromBase, err := c.now.parent(abs(from))
	if err != nil {
		return fail(err)
	}
	toDir, toBase, err := c.now.parent(abs(to))
	if err != nil {
		return fail(err)
	}
	id, ok := c.now.lookup(fromDir, fromBase)
	if !ok {
		return fail(fs.ErrNotExist)
	}
	if err := c.now.mayReplace(id, toDir, toBase); err != nil {
		return fail(err)
	}
	if fromDir == toDir && fromBase == toBase {
		return nil
	}
	return c.do(change{Op: Op{Kind: OpRename, Name: from, To: to}, dir: fromDir, base: fromBase, node: id, toDir: toDir, toBase: toBase})
}

func (c *CrashFS) Remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir, base, err := c.now.parent(abs(name))
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	id, ok := c.now.lookup(dir, base)
	if !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if len(c.now.nodes[id].entries) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: errNotEmpty}
	}
	return c.do(change{Op: Op{Kind: OpRemove, Name: name}, dir: dir, base: base, node: id})
}

func (c *CrashFS) RemoveAll(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	dir, base, err := c.now.parent(abs(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "RemoveAll", Path: name, Err: err}
	}
	id, ok := c.now.lookup(dir, base)
	if !ok {
		return nil
	}
	return c.removeTree(name, dir, base, id)
}

func (c *CrashFS) removeTree(name string, dir int, base string, id int) error {
	n := c.now.nodes[id]
	for _, child := range n.names() {
		if err := c.removeTree(path.Join(name, child), id, child, n.entries[child]); err != nil {
			return err
		}
	}
	return c.do(change{Op: Op{Kind: OpRemove, Name: name}, dir: dir, base: base, node: id})
}

func (c *CrashFS) MkdirAll(name string, perm fs.FileMode) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, walked := rootNode, "/"
	for _, part := range split(abs(name)) {
		walked = path.Join(walked, part)
		id, ok := c.now.lookup(at, part)
		if !ok {
			id = c.now.next
			if err := c.do(change{Op: Op{Kind: OpMkdir, Name: walked}, dir: at, base: part, node: id}); err != nil {
				return err
			}
		}
		if !c.now.nodes[id].dir {
			return &fs.PathError{Op: "mkdir", Path: walked, Err: errNotDir}
		}
		at = id
	}
	return nil
}

func (c *CrashFS) ReadDir(name string) ([]fs.DirEntry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := c.now.find(abs(name))
	if err == nil && !c.now.nodes[id].dir {
		err = errNotDir
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var out []fs.DirEntry
	n := c.now.nodes[id]
	for _, child := range n.names() {
		out = append(out, fs.FileInfoToDirEntry(c.now.info(child, n.entries[child])))
	}
	return out, nil
}

func (c *CrashFS) Stat(name string) (fs.FileInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := c.now.find(abs(name))
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return c.now.info(path.Base(abs(name)), id), nil
}

// SetModified checks that the file is there; times are not kept.
func (c *CrashFS) SetModified(name string, _ time.Time) error {
	_, err := c.Stat(name)
	return err
}

func (c *CrashFS) SyncDir(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := c.now.find(abs(dir))
	if err == nil && !c.now.nodes[id].dir {
		err = errNotDir
	}
	if err != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	return c.do(change{Op: Op{Kind: OpSyncDir, Name: dir}, node: id})
}

func (c *CrashFS) Lock(name string) (Lock, error) {
	f, err := c.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[abs(name)] {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	c.locks[abs(name)] = true
	return &crashLock{c: c, name: abs(name), f: f}, nil
}

type crashLock struct {
	c    *CrashFS
	name string
	f    File
}

// Identity implements Lock: an image of a disk has nothing to tell files apart by.
func (l *crashLock) Identity() string { return "" }

func (l *crashLock) Close() error {
	if err := l.f.Close(); err != nil {
		return err
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	delete(l.c.locks, l.name)
	return nil
}

// Space is always plenty. A full disk is Inject's business.
func (c *CrashFS) Space(dir string) (total, usable int64, err error) {
	if _, err := c.Stat(dir); err != nil {
		return 0, 0, err
	}
	return 1 << 40, 1 << 40, nil
}

// epoch is the time of every file: times are not modelled.
var epoch = time.Unix(1_700_000_000, 0)
