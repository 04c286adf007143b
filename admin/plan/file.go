package plan

// File is an assignment in the form that kafka-reassign-partitions reads.
type File struct {
	Version    int             `json:"version"`
	Partitions []FilePartition `json:"partitions"`
}

// FilePartition is a partition in a File. A log directory is "any" where the broker is to choose it.
type FilePartition struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Replicas  []int32  `json:"replicas"`
	LogDirs   []string `json:"log_dirs"`
}

// AnyDir is the log directory of a replica that may be in any.
const AnyDir = "any"

// File is the assignment as a file, by partition, in any directories.
func (a Assignment) File() File {
	file := File{1, []FilePartition{}}
	for _, p := range a.Partitions() {
		e := FilePartition{p.Topic, p.ID, append([]int32{}, a[p]...), []string{}}
		for range e.Replicas {
			e.LogDirs = append(e.LogDirs, AnyDir)
		}
		file.Partitions = append(file.Partitions, e)
	}
	return file
}
