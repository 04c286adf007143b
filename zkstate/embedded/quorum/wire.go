package quorum

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// A connection between members begins with a hello from each side. What follows goes from the one that dialled to the other:
// Raft's messages, each after its length.

const (
	maxHello   = 16 << 10
	maxMessage = 1 << 30 // a snapshot is one message
	stepBytes  = 1 << 20 // a frame is allocated as it arrives, in steps of this
)

// helloWait is how long either side waits for the other's hello.
const helloWait = 3 * time.Second

// protocolName is the first thing that each side says.
const protocolName = "barnabas-quorum-1"

// hello is what a member says of itself.
type hello struct {
	Protocol string   `json:"protocol"`
	From     uint64   `json:"from"`
	To       uint64   `json:"to"`
	Members  []uint64 `json:"members"` // the servers that its file names
	Disk     string   `json:"disk"`
	Of       ensemble `json:"of"`
	Full     bool     `json:"full"`              // its state is not empty, though it is of no ensemble
	Ask      bool     `json:"ask,omitempty"`     // whoever dialled wants to know, and sends nothing
	Refused  string   `json:"refused,omitempty"` // why the answerer takes no messages
}

func writeFrame(w io.Writer, body []byte) error {
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body)))); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// readFrame reads a frame of at most limit bytes. A length alone reserves nothing.
func readFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(limit) {
		return nil, fmt.Errorf("frame of %d bytes is over the limit of %d", n, limit)
	}
	buf := make([]byte, 0, min(int(n), stepBytes))
	for len(buf) < int(n) {
		step := min(int(n)-len(buf), stepBytes)
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r, buf[len(buf)-step:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func writeHello(w io.Writer, h hello) error {
	h.Protocol = protocolName
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return writeFrame(w, body)
}

func readHello(r io.Reader) (h hello, err error) {
	body, err := readFrame(r, maxHello)
	if err == nil {
		err = decodeHello(body, &h)
	}
	return h, err
}

func decodeHello(body []byte, h *hello) error {
	if err := json.Unmarshal(body, h); err != nil {
		return fmt.Errorf("not a member's hello: %w", err)
	}
	if h.Protocol != protocolName {
		return fmt.Errorf("hello of protocol %.40q, not %q", h.Protocol, protocolName)
	}
	return nil
}

// greet dials a member and exchanges hellos.
func greet(addr string, mine hello) (net.Conn, hello, error) {
	nc, err := net.DialTimeout("tcp", addr, helloWait)
	if err != nil {
		return nil, hello{}, err
	}
	_ = nc.SetDeadline(time.Now().Add(helloWait))
	if err = writeHello(nc, mine); err == nil {
		var theirs hello
		if theirs, err = readHello(nc); err == nil {
			_ = nc.SetDeadline(time.Time{})
			return nc, theirs, nil
		}
	}
	_ = nc.Close()
	return nil, hello{}, err
}
