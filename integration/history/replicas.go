package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// CompareReplicas compares the logs of one partition in the data directories of stopped brokers, batch by batch and byte for byte, leader epochs included. Where the segments begin may
// differ. It returns the faults.
func CompareReplicas(dirs []string, partition string) []string {
	var faults []string
	var first []byte
	for i, dir := range dirs {
		data, err := wholeLog(filepath.Join(dir, partition))
		if err != nil {
			return append(faults, fmt.Sprintf("%s: %v", partition, err))
		}
		if i == 0 {
			first = data
		} else if !bytes.Equal(first, data) {
			faults = append(faults, fmt.Sprintf("%s in %s and %s: %s", partition, dirs[0], dir, firstDifference(first, data)))
		}
	}
	return faults
}

// Verify lets the storage's own judge look at a partition's directory.
func Verify(dir, partition string) []string {
	problems, err := commitlog.Verify(vfs.OS, filepath.Join(dir, partition))
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	for _, p := range problems {
		faults = append(faults, fmt.Sprintf("%s in %s: %v", partition, dir, p))
	}
	return faults
}

// wholeLog is the segments of a partition, one after the other.
func wholeLog(dir string) ([]byte, error) {
	segments, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(segments) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has %d segments", dir, len(segments)))
	}
	slices.Sort(segments) // names are offsets with leading zeros
	var all []byte
	for _, s := range segments {
		data, err := os.ReadFile(s)
		if err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	return all, nil
}

// firstDifference names the first batches in which two logs differ.
func firstDifference(a, b []byte) string {
	for {
		x, restA, errA := record.Next(a)
		y, restB, errB := record.Next(b)
		switch {
		case errA != nil && errB != nil:
			return fmt.Sprintf("what follows the last whole batch (%v, %v)", errA, errB)
		case errA != nil:
			return fmt.Sprintf("the first ends where the second has offset %d", y.BaseOffset())
		case errB != nil:
			return fmt.Sprintf("the second ends where the first has offset %d", x.BaseOffset())
		case !bytes.Equal(x, y):
			return fmt.Sprintf("offsets %d to %d of epoch %d, and %d to %d of epoch %d", x.BaseOffset(), x.LastOffset(), x.PartitionLeaderEpoch(), y.BaseOffset(), y.LastOffset(), y.PartitionLeaderEpoch())
		}
		a, b = restA, restB
	}
}
