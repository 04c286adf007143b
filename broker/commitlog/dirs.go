package commitlog

import "barnabas/broker/vfs"

// Meta is the content of meta.properties, version 0 (a broker that uses ZooKeeper).
type Meta struct {
	Version     int
	BrokerID    int32
	HasBrokerID bool
	ClusterID   string
	Extra       map[string]string // keys that this version does not know, kept when rewritten
}

// ReadMeta reads meta.properties of a log directory; false when there is none.
func ReadMeta(fs vfs.FS, dir string) (Meta, bool, error) { panic("commitlog: ReadMeta") }

// WriteMeta replaces meta.properties of a log directory.
func WriteMeta(fs vfs.FS, dir string, m Meta) error { panic("commitlog: WriteMeta") }
