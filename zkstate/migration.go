package zkstate

// MigrationPath is where a KRaft controller notes how far it has taken the cluster over (KIP-866). Barnabas takes no
// part in migrations; tools show the node, and a broker that finds it says so.
const MigrationPath = "/migration"

// Migration is the data of MigrationPath.
type Migration struct {
	ControllerID, ControllerEpoch int32
	MetadataOffset                int64
	MetadataEpoch                 int32
}

// Encode writes the node.
func (m Migration) Encode() []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(0)
	w.key("kraft_metadata_offset")
	w.int(m.MetadataOffset)
	w.key("kraft_controller_id")
	w.int(int64(m.ControllerID))
	w.key("kraft_metadata_epoch")
	w.int(int64(m.MetadataEpoch))
	w.key("kraft_controller_epoch")
	w.int(int64(m.ControllerEpoch))
	w.close('}')
	return w.buf
}

// DecodeMigration reads the node.
func DecodeMigration(data []byte) (Migration, error) {
	o := parseObject("migration state", data)
	m := Migration{ControllerID: o.int32("kraft_controller_id"), ControllerEpoch: o.int32("kraft_controller_epoch"),
		MetadataOffset: o.number("kraft_metadata_offset"), MetadataEpoch: o.int32("kraft_metadata_epoch")}
	return m, o.wrapped()
}
