package commitlog

import "barnabas/broker/vfs"

// Problem is something that Verify found wrong.
type Problem struct {
	File     string
	Position int64 // in bytes; -1 when it concerns the whole file
	Cause    string
}

// Verify walks one partition's directory (segments, indexes, epochs, producer snapshots) and tells what is wrong.
// It changes nothing. The error is for a directory that cannot be read.
func Verify(fs vfs.FS, dir string) ([]Problem, error) { panic("commitlog: Verify") }
