package quorum

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// The way of Raft's messages. Each member dials each other one; what goes to a member goes over the connection that was dialled
// to it. Messages may be lost: Raft sends again. So nothing here waits for a slow member; what it does not take is dropped.

const (
	outbox    = 1024            // messages that may wait for one member
	writeWait = 5 * time.Second // …and how long one write may take
	redial    = 200 * time.Millisecond
)

// network is the connections of one member.
type network struct {
	m       *Member
	inbox   chan letter
	peers   map[uint64]*peer
	running sync.WaitGroup
	ctx     context.Context

	mu struct {
		sync.Mutex
		conns  map[net.Conn]struct{}
		fates  map[uint64]fate
		closed bool
	}
}

// fate is what became of the messages for a member since Raft was last told.
type fate struct{ lost, snapshotLost, snapshotSent bool }

type peer struct {
	id     uint64
	addr   string
	outbox chan letter
}

// letter is a message and the disk of the other side: where it comes from, or whom it is for, "" for any. A leader's message for the disk of before tells the new one of entries that it
// never had, and Raft gives up on that.
type letter struct {
	msg  *raftpb.Message
	disk string
}

func newNetwork(m *Member) *network {
	n := &network{m: m, inbox: make(chan letter), peers: map[uint64]*peer{}, ctx: m.stopped}
	n.mu.conns, n.mu.fates = map[net.Conn]struct{}{}, map[uint64]fate{}
	for id, addr := range m.cfg.Servers {
		if id != m.cfg.ID {
			n.peers[id] = &peer{id, addr, make(chan letter, outbox)}
		}
	}
	n.running.Go(n.accept)
	return n
}

// close ends all connections. The member's context has ended before.
func (n *network) close() {
	_ = n.m.cfg.Listener.Close()
	n.mu.Lock()
	n.mu.closed = true
	for nc := range n.mu.conns {
		_ = nc.Close()
	}
	n.mu.Unlock()
	n.running.Wait()
}

// hold keeps a connection where close finds it; false: it is too late.
func (n *network) hold(nc net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.closed {
		_ = nc.Close()
		return false
	}
	n.mu.conns[nc] = struct{}{}
	return true
}

func (n *network) drop(nc net.Conn) {
	_ = nc.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.conns, nc)
}

// accept takes the others' connections until the listener closes.
func (n *network) accept() {
	for {
		nc, err := n.m.cfg.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, or the like: it passes
			n.m.cfg.Log.WithError(err).Warn("A member's connection cannot be accepted")
			if !n.pause(redial) {
				return
			}
			continue
		}
		if n.hold(nc) {
			n.running.Go(func() {
				defer n.drop(nc)
				n.receive(nc)
			})
		}
	}
}

// pause waits; false: the member ends.
func (n *network) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-n.ctx.Done():
		return false
	}
}

// receive takes one connection's messages.
func (n *network) receive(nc net.Conn) {
	_ = nc.SetDeadline(time.Now().Add(helloWait))
	r := bufio.NewReaderSize(nc, 64<<10)
	theirs, err := readHello(r)
	if err != nil {
		n.m.cfg.Log.WithError(err).WithField("client", nc.RemoteAddr()).Debug("Not a member's connection")
		return
	}
	mine := n.m.identity()
	mine.To, mine.Refused = theirs.From, refusal(mine, theirs)
	n.m.stranger(theirs)
	if err := writeHello(nc, mine); err != nil || theirs.Ask || mine.Refused != "" {
		return
	}
	_ = nc.SetDeadline(time.Time{})
	for {
		body, err := readFrame(r, maxMessage)
		if err != nil {
			return
		}
		msg := &raftpb.Message{}
		if err := proto.Unmarshal(body, msg); err != nil || msg.GetFrom() != theirs.From || msg.GetTo() != n.m.cfg.ID {
			n.m.cfg.Log.WithField("server", theirs.From).Warn("A member sent what is not a message to this one; connection closed")
			return
		}
		select {
		case n.inbox <- letter{msg, theirs.Disk}:
		case <-n.ctx.Done():
			return
		}
	}
}

// refusal is why messages of a member are not taken, "" if they are.
func refusal(mine, theirs hello) string {
	switch {
	case mine.From != theirs.To:
		return fmt.Sprintf("this is server %d, not %d", mine.From, theirs.To)
	case theirs.Ask:
		return ""
	case !slices.Contains(mine.Members, theirs.From):
		return fmt.Sprintf("no server %d is named here", theirs.From)
	case mine.Of.ID == "" || mine.Of.ID != theirs.Of.ID:
		return "this server is not of that ensemble"
	case mine.Of.Disks[theirs.From] != theirs.Disk && theirs.Of.Disks[theirs.From] != theirs.Disk:
		return fmt.Sprintf("server %d is known by another disk", theirs.From)
	case theirs.Of.Disks[mine.From] != mine.Disk: // it, or this one, has not heard of a change yet: it will ask again
		return fmt.Sprintf("this server is known there by another disk than %s", mine.Disk)
	}
	return ""
}

// dialAll begins to send.
func (n *network) dialAll() {
	for _, p := range n.peers {
		n.running.Go(func() { n.serve(p) })
	}
}

// send hands messages out, for the disks by which the members are known, nil for any; what does not fit is lost.
func (n *network) send(messages []*raftpb.Message, disks map[uint64]string) {
	for _, msg := range messages {
		p := n.peers[msg.GetTo()]
		if p == nil {
			continue
		}
		select {
		case p.outbox <- letter{msg, disks[msg.GetTo()]}:
		default:
			n.lost(msg)
		}
	}
}

// lost and sent note what became of a message.
func (n *network) lost(msg *raftpb.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.mu.fates[msg.GetTo()]
	f.lost, f.snapshotLost = true, f.snapshotLost || msg.GetType() == raftpb.MsgSnap
	n.mu.fates[msg.GetTo()] = f
}

func (n *network) sent(msg *raftpb.Message) {
	if msg.GetType() != raftpb.MsgSnap {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.mu.fates[msg.GetTo()]
	f.snapshotSent = true
	n.mu.fates[msg.GetTo()] = f
}

// report tells Raft, which sends to a member that loses messages one at a time, and nothing to one that is being sent a snapshot.
func (n *network) report(node *raft.RawNode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, f := range n.mu.fates {
		switch {
		case f.snapshotLost:
			node.ReportSnapshot(id, raft.SnapshotFailure)
		case f.snapshotSent:
			node.ReportSnapshot(id, raft.SnapshotFinish)
		}
		if f.lost {
			node.ReportUnreachable(id)
		}
	}
	clear(n.mu.fates)
}

// serve keeps a connection to a member and sends what is for it.
func (n *network) serve(p *peer) {
	for n.ctx.Err() == nil {
		mine := n.m.identity()
		mine.To = p.id
		nc, theirs, err := greet(p.addr, mine)
		if err == nil && theirs.Refused != "" {
			n.m.cfg.Log.WithFields(map[string]any{"server": p.id, "reason": theirs.Refused}).Debug("A member does not take this one's messages")
			_ = nc.Close()
			err = errors.New(theirs.Refused)
		}
		if err == nil && n.hold(nc) {
			n.stream(p, nc, theirs.Disk)
			n.drop(nc)
		}
		n.discard(p)
		if !n.pause(redial) {
			return
		}
	}
}

// stream sends to a disk until the connection breaks.
func (n *network) stream(p *peer, nc net.Conn, disk string) {
	w := bufio.NewWriterSize(nc, 64<<10)
	gone := make(chan struct{}) // the other side sends nothing: a read ends when the connection does
	n.running.Go(func() {
		defer close(gone)
		_, _ = nc.Read(make([]byte, 1))
		_ = nc.Close()
	})
	defer func() { <-gone }()
	defer nc.Close() //nolint:errcheck // nothing is lost with it that Raft would not send again
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-gone:
			return
		case l := <-p.outbox:
			msg := l.msg
			if l.disk != "" && l.disk != disk { // it is from before a change, or the connection is
				n.lost(msg)
				return
			}
			body, err := proto.Marshal(msg)
			if err == nil {
				_ = nc.SetWriteDeadline(time.Now().Add(writeWait + time.Duration(len(body)/stepBytes)*time.Second))
				err = writeFrame(w, body)
			}
			if err == nil && len(p.outbox) == 0 {
				err = w.Flush()
			}
			if err != nil {
				n.lost(msg)
				return
			}
			n.sent(msg)
		}
	}
}

// discard empties what waits for a member that cannot be reached.
func (n *network) discard(p *peer) {
	for {
		select {
		case l := <-p.outbox:
			n.lost(l.msg)
		default:
			return
		}
	}
}
