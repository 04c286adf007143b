package broker

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"barnabas/zkstate"
)

// A broker that was killed leaves its ZooKeeper session behind, which keeps its registration alive until its timeout: so long its partitions have no leader, and it cannot register again. So while
// a session holds the registration, its key lies in a note in each log directory, and whoever is started on that directory after a kill ends the session first (session_notes.go).
//
// To end the session of a living broker would cost it its leaderships, so a note counts only when all of it fits:
//
//   - lock: the device and number of the file whose lock the writer held. It keeps that lock as long as it lives, so whoever holds the lock of that very file now knows it dead. A copied directory
//     has another lock file, and so has one whose lock file was deleted, as a number is not given anew while the file is open; one that was moved has the same
//   - boot: numbers of files say something within one life of one kernel, which containers share. On a clone of the disk in another machine, or after a reboot, they say nothing
//   - broker and cluster
//   - holder: the session is the one that holds this broker's registration. A note that was left behind, as when Apache Kafka took over in between, names a session that is over; and
//     where nobody holds the registration nothing has to be ended
//
// Where one piece is missing the start waits for the timeout, as it always may. Two things go beyond this: machines made from one image of a memory, which share the boot's id, with clones of one
// disk; and a file system that gives one lock to two processes of one machine. In both two brokers act as one already, or are about to.

// sessionNote is what a broker says of its session.
type sessionNote struct {
	boot    string // id of the kernel's life
	lock    string // which file the writer held the lock of (vfs.Lock)
	broker  int32
	cluster string
	key     zkstate.SessionKey
}

// vantage is what a broker that is starting knows of itself.
type vantage struct {
	boot    string
	lock    string
	broker  int32
	cluster string
	holder  int64 // session that holds this broker's registration; 0: none
}

// tellsOfPredecessor tells whether the note's writer was this broker's life before, is dead, and still holds the registration.
func (n sessionNote) tellsOfPredecessor(v vantage) bool {
	return v.boot != "" && n.boot == v.boot &&
		v.lock != "" && n.lock == v.lock &&
		n.broker == v.broker && n.cluster == v.cluster &&
		v.holder != 0 && n.key.ID == v.holder
}

const (
	noteVersion = 1
	maxNote     = 4096 // bytes
)

// noteJSON is a note as it is written. A session's id is written as ZooKeeper's own tools do.
type noteJSON struct {
	Version  int    `json:"version"`
	Boot     string `json:"boot"`
	Lock     string `json:"lock"`
	Broker   int32  `json:"broker"`
	Cluster  string `json:"cluster"`
	Session  string `json:"session"`
	Password string `json:"password"`
}

func (n sessionNote) encode() ([]byte, error) {
	return json.Marshal(noteJSON{Version: noteVersion, Boot: n.boot, Lock: n.lock, Broker: n.broker, Cluster: n.cluster,
		Session: fmt.Sprintf("0x%x", uint64(n.key.ID)), Password: hex.EncodeToString(n.key.Password)})
}

func decodeSessionNote(data []byte) (sessionNote, error) {
	var j noteJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return sessionNote{}, err
	}
	if j.Version != noteVersion {
		return sessionNote{}, fmt.Errorf("version %d is not known", j.Version)
	}
	id, err := strconv.ParseUint(j.Session, 0, 64)
	if err != nil {
		return sessionNote{}, err
	}
	password, err := hex.DecodeString(j.Password)
	if err != nil {
		return sessionNote{}, errors.New("the password is not in hexadecimal digits") // without what it is
	}
	return sessionNote{boot: j.Boot, lock: j.Lock, broker: j.Broker, cluster: j.Cluster, key: zkstate.SessionKey{ID: int64(id), Password: password}}, nil
}
