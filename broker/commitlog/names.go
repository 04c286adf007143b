package commitlog

// Names of files and directories. A directory name is bounded to 255 bytes, as file systems are: the topic's name is cut
// where a suffix would not fit (BR-013).

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Suffixes of files.
const (
	logSuffix     = ".log"
	indexSuffix   = ".index"
	timeSuffix    = ".timeindex"
	txnSuffix     = ".txnindex"
	deletedSuffix = ".deleted"
	swapSuffix    = ".swap"
	cleanedSuffix = ".cleaned"
)

// dirState is what the name of a partition's directory says of it.
type dirState int8

const (
	currentDir dirState = iota
	futureDir           // is filled to replace the current one in another log directory
	deletedDir          // waits for its removal
	strayDir            // was set aside: the cluster does not know this replica
)

var dirSuffix = [...]string{currentDir: "", futureDir: "-future", deletedDir: "-delete", strayDir: "-stray"}

const maxNameBytes = 255

// fileName names a segment's file: the base offset in 20 digits and the suffix.
func fileName(base int64, suffix string) string {
	var digits [20]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + base%10)
		base /= 10
	}
	return string(digits[:]) + suffix
}

// parseFileName takes a name apart that fileName made (or Kafka, or one with a further suffix such as .deleted).
func parseFileName(name string) (base int64, suffix string, ok bool) {
	digits, rest, found := strings.Cut(name, ".")
	if !found || digits == "" {
		return 0, "", false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, "", false
		}
	}
	base, err := strconv.ParseInt(digits, 10, 64)
	return base, "." + rest, err == nil
}

// dirName names the directory of a partition in a state; the states other than current get a unique id. A future
// replica's name has to tell the whole topic, so its id is what gets shorter, and the longest topics have no room for it.
func dirName(tp TopicPartition, state dirState) (string, error) {
	if state == currentDir {
		return tp.String(), nil
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails: see crypto/rand
	id := hex.EncodeToString(random[:])
	topic := tp.Topic
	partition := "-" + strconv.Itoa(int(tp.Partition)) + "."
	room := maxNameBytes - len(partition) - len(dirSuffix[state])
	if state == futureDir {
		if room-len(topic) < 1 {
			return "", fmt.Errorf("the name of %s is too long for a second replica on this broker", tp)
		}
		id = id[:min(len(id), room-len(topic))]
	} else {
		topic = topic[:min(len(topic), room-len(id))]
	}
	return topic + partition + id + dirSuffix[state], nil
}

var suffixedDir = regexp.MustCompile(`^(\S+)-(\S+)\.(\S+)-(delete|future|stray)$`)

// parseDirName tells which partition a directory belongs to. The topic of a deleted or stray one may be cut short.
func parseDirName(name string) (TopicPartition, dirState, bool) {
	state := currentDir
	for s := futureDir; s <= strayDir; s++ {
		if strings.HasSuffix(name, dirSuffix[s]) {
			if !suffixedDir.MatchString(name) {
				return TopicPartition{}, 0, false
			}
			state = s
			name = name[:strings.LastIndexByte(name, '.')]
			break
		}
	}
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return TopicPartition{}, 0, false
	}
	p, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil || p < 0 {
		return TopicPartition{}, 0, false
	}
	return TopicPartition{name[:dash], int32(p)}, state, true
}

// openCreate opens a file for reading and writing and makes it when it does not exist.
const openCreate = os.O_RDWR | os.O_CREATE

// PartitionOfDir tells by a directory's name whose log is in it, and whether that one is to replace the current one (future). It is not ok for a name that is no partition's, and for logs that were deleted
// or set aside.
func PartitionOfDir(name string) (tp TopicPartition, future, ok bool) {
	tp, state, ok := parseDirName(name)
	return tp, state == futureDir, ok && (state == currentDir || state == futureDir)
}
