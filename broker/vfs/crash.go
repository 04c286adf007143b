package vfs

// CrashFS is a file system in memory that forgets, at a power cut, what was never synced.
type CrashFS struct{ FS }

// NewCrashFS makes an empty one with the directory /.
func NewCrashFS() *CrashFS { panic("not yet") }
