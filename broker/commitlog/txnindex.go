package commitlog

// The transaction index of a segment: the aborted transactions whose marker lies in it, in the order of the markers.
// The file exists only when there is one.

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	abortedBytes    = 2 + 4*8
	abortedVersion  = 0
	maxAbortedBytes = 1 << 30
)

// abortedTx is one entry of a .txnindex.
type abortedTx struct {
	producerID  int64
	first, last int64 // offsets of the first record and of the marker
	stable      int64 // last stable offset when the transaction was aborted
}

// stableAfter is the last stable offset when the transaction was aborted, never beyond its marker. Apache Kafka's followers write what begins behind the marker when they get both in one fetch;
// a search that believed that would end before it has seen every entry.
func (a abortedTx) stableAfter() int64 { return min(a.stable, a.last+1) }

func (a abortedTx) encode() []byte {
	out := make([]byte, 0, abortedBytes)
	out = binary.BigEndian.AppendUint16(out, abortedVersion)
	out = binary.BigEndian.AppendUint64(out, uint64(a.producerID))
	out = binary.BigEndian.AppendUint64(out, uint64(a.first))
	out = binary.BigEndian.AppendUint64(out, uint64(a.last))
	return binary.BigEndian.AppendUint64(out, uint64(a.stable))
}

// parseAborted reads a .txnindex of the segment at base. file is for the error.
func parseAborted(file string, data []byte, base int64) ([]abortedTx, error) {
	if len(data)%abortedBytes != 0 {
		return nil, corruptAt(file, int64(len(data)), "%d bytes are no whole number of entries", len(data))
	}
	list := make([]abortedTx, 0, len(data)/abortedBytes)
	last := base - 1
	for pos := int64(0); len(data) > 0; pos, data = pos+abortedBytes, data[abortedBytes:] {
		if v := binary.BigEndian.Uint16(data); v != abortedVersion {
			return nil, corruptAt(file, pos, "unknown version %d", v)
		}
		a := abortedTx{
			producerID: int64(binary.BigEndian.Uint64(data[2:])),
			first:      int64(binary.BigEndian.Uint64(data[10:])),
			last:       int64(binary.BigEndian.Uint64(data[18:])),
			stable:     int64(binary.BigEndian.Uint64(data[26:])),
		}
		if a.last <= last || a.first > a.last {
			return nil, corruptAt(file, pos, "transaction from %d to %d follows offset %d", a.first, a.last, last)
		}
		last = a.last
		list = append(list, a)
	}
	return list, nil
}

// abortedList returns the entries of the segment.
func (s *segment) abortedList() ([]abortedTx, error) {
	if p := s.aborted.Load(); p != nil {
		return *p, nil
	}
	path := s.place.path(fileName(s.base, txnSuffix))
	data, err := readSmallFile(s.place.fs, path, maxAbortedBytes)
	if err != nil {
		return nil, err
	}
	list, err := parseAborted(path, data, s.base)
	if err != nil {
		return nil, err
	}
	s.aborted.CompareAndSwap(nil, &list)
	return list, nil
}

// addAborted appends an entry. A rewrite of the whole file would be atomic, but an entry that is torn by a crash belongs
// to a marker that is recovered, and its entry with it.
func (s *segment) addAborted(a abortedTx) error {
	list, err := s.abortedList()
	if err != nil {
		return err
	}
	list = append(list[:len(list):len(list)], a)
	if err := s.writeAborted(a.encode(), int64(len(list)-1)*abortedBytes); err != nil {
		return err
	}
	s.aborted.Store(&list)
	return nil
}

// cutAborted drops the entries of markers at or behind offset.
func (s *segment) cutAborted(offset int64) error {
	list, err := s.abortedList()
	if err != nil {
		return err
	}
	keep := len(list)
	for keep > 0 && list[keep-1].last >= offset {
		keep--
	}
	if keep == len(list) {
		return nil
	}
	list = list[:keep:keep]
	if err := s.replaceAborted(list); err != nil {
		return err
	}
	s.aborted.Store(&list)
	return nil
}

// writeAborted puts data at the end of the file, which is size bytes long.
func (s *segment) writeAborted(data []byte, size int64) error {
	f, err := s.place.fs.OpenFile(s.place.path(fileName(s.base, txnSuffix)), openCreate, 0o644)
	if err != nil {
		return err
	}
	if f.Size() != size {
		err = f.Truncate(size)
	}
	if err == nil && len(data) > 0 {
		err = f.Append(data)
	}
	s.unsyncedAborted.Store(true)
	return errors.Join(err, f.Close())
}

// syncAborted makes the entries durable.
func (s *segment) syncAborted() error {
	if !s.unsyncedAborted.Swap(false) {
		return nil
	}
	f, err := s.place.fs.OpenFile(s.place.path(fileName(s.base, txnSuffix)), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replaceAborted makes list the content of the file; no entry, no file.
func (s *segment) replaceAborted(list []abortedTx) error {
	path := s.place.path(fileName(s.base, txnSuffix))
	if len(list) == 0 {
		err := s.place.fs.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data := make([]byte, 0, len(list)*abortedBytes)
	for _, a := range list {
		data = append(data, a.encode()...)
	}
	return replaceFile(s.place.fs, filepath.Dir(path), filepath.Base(path), data)
}
