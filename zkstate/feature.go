package zkstate

import "errors"

// Finalised features of the cluster (KIP-584); the controller keeps the node when inter.broker.protocol.version is at
// least 2.7.

// FeaturePath is the node of the features.
const FeaturePath = "/feature"

// Features is the data of FeaturePath.
type Features struct {
	Version int32 // 1; since inter.broker.protocol.version 3.3 it is 2, without minimum levels
	Enabled bool
	Levels  map[string]int16 // the finalised (maximum) version level
}

// Encode writes the node as the Kafka of that version does.
func (f Features) Encode() []byte {
	var w jsonWriter
	w.open('{')
	w.key("features")
	w.open('{')
	for _, name := range scalaOrder(keysOf(f.Levels)) {
		w.key(name)
		w.open('{')
		w.key("max_version_level")
		w.int(int64(f.Levels[name]))
		if f.Version == 1 {
			w.key("min_version_level")
			w.int(int64(f.Levels[name]))
		}
		w.close('}')
	}
	w.close('}')
	w.key("version")
	w.int(int64(f.Version))
	w.key("status")
	if f.Enabled {
		w.int(1)
	} else {
		w.int(0)
	}
	w.close('}')
	return w.buf
}

// DecodeFeatures reads versions 1 and 2 of the node.
func DecodeFeatures(data []byte) (Features, error) {
	o := parseObject("features", data)
	f := Features{Version: o.int32("version"), Enabled: o.int32("status") == 1, Levels: map[string]int16{}}
	if o.err == nil && (f.Version < 1 || f.Version > 2) {
		o.fail("version", errVersion)
	}
	levels := o.child("features")
	for name := range levels.fields {
		l := levels.child(name)
		level := l.int32("max_version_level")
		if l.err == nil && (level < 1 || level > 1<<15-1) {
			l.fail("max_version_level", errors.New("out of range"))
		}
		if l.err != nil {
			o.fail("features", l.err)
			break
		}
		f.Levels[name] = int16(level)
	}
	if levels.err != nil {
		o.fail("features", levels.err)
	}
	return f, o.wrapped()
}
