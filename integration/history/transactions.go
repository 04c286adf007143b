package history

import (
	"maps"
	"slices"
	"time"
)

// Placed is a record and the partition that it was sent to.
type Placed struct {
	Name
	Partition int32
}

// Transaction is what one producer wrote in one transaction. Done says that the commit was acknowledged, Refused that the transaction was aborted.
type Transaction struct {
	ID      string
	Fate    Fate
	Records []Placed
}

// JudgeTransactions compares transactions with what read_committed consumers found from the start of each partition to its end. It returns one line for each fault: a record of an aborted
// transaction, one that is there twice, in another partition, or that nobody sent, one that overtook its producer's earlier one, a committed transaction that is not there, and a torn one of
// which some records are there and others are not.
func JudgeTransactions(transactions []Transaction, logs map[int32][]Read) []string {
	var faults tally
	type sent struct{ in, partition int32 }
	of := map[Name]sent{}
	for i := range transactions {
		for _, r := range transactions[i].Records {
			of[r.Name] = sent{int32(i), r.Partition}
		}
	}
	visible := make([]int, len(transactions))
	seen := map[Name]bool{}
	for _, p := range slices.Sorted(maps.Keys(logs)) {
		last := map[uint32]uint64{}
		for _, r := range logs[p] {
			from, known := of[r.Name]
			switch {
			case !known || from.partition != p:
				faults.add(p, "foreign", "record %d of producer %d at offset %d was never sent here", r.Number, r.Producer, r.Offset)
			case seen[r.Name]:
				faults.add(p, "doubled", "record %d of producer %d is there again at offset %d", r.Number, r.Producer, r.Offset)
			case transactions[from.in].Fate == Refused:
				faults.add(p, "aborted", "record %d of producer %d at offset %d is of a transaction of %s that was aborted", r.Number, r.Producer, r.Offset, transactions[from.in].ID)
			default:
				visible[from.in]++
				if r.Number < last[r.Producer] {
					faults.add(p, "order", "record %d of producer %d at offset %d comes after its record %d", r.Number, r.Producer, r.Offset, last[r.Producer])
				}
				last[r.Producer] = r.Number
			}
			seen[r.Name] = true
		}
	}
	for i, n := range visible {
		t := &transactions[i]
		switch {
		case n == len(t.Records):
		case n > 0:
			faults.about("transactions of "+t.ID, "torn", "%d of %d records are there, beginning with %d of producer %d", n, len(t.Records), t.Records[0].Number, t.Records[0].Producer)
		case t.Fate == Done:
			faults.about("transactions of "+t.ID, "lost", "none of %d records is there, beginning with %d of producer %d", len(t.Records), t.Records[0].Number, t.Records[0].Producer)
		}
	}
	return faults.lines()
}

// JudgeCopies compares what was read in and what a consume-transform-produce application wrote, as read_committed consumers find it: each partition has the same records as the one that it
// was made from, each once, in the same order.
func JudgeCopies(in, out map[int32][]Read) []string {
	var faults tally
	partitions := map[int32]bool{}
	for p := range in {
		partitions[p] = true
	}
	for p := range out {
		partitions[p] = true
	}
	for _, p := range slices.Sorted(maps.Keys(partitions)) {
		place := make(map[Name]int, len(in[p]))
		for i, r := range in[p] {
			place[r.Name] = i
		}
		copied := map[Name]bool{}
		last := -1
		for _, r := range out[p] {
			at, known := place[r.Name]
			switch {
			case !known:
				faults.add(p, "foreign", "the copy at offset %d is of record %d of producer %d, which is not in this partition", r.Offset, r.Number, r.Producer)
				continue
			case copied[r.Name]:
				faults.add(p, "doubled", "offset %d is copied again at offset %d", in[p][at].Offset, r.Offset)
			case at < last:
				faults.add(p, "order", "the copy of offset %d, at offset %d, comes after that of %d", in[p][at].Offset, r.Offset, in[p][last].Offset)
			}
			copied[r.Name] = true
			last = max(last, at)
		}
		for _, r := range in[p] {
			if !copied[r.Name] {
				faults.add(p, "not copied", "offset %d", r.Offset)
			}
		}
	}
	return faults.lines()
}

// Progress is how far read_committed consumers can read a partition, and where it ends, at some time.
type Progress struct {
	Place       Place
	Stable, End int64
	At          time.Duration
}

// JudgeProgress looks for open transactions that nobody ends: the last stable offset stays where it is, below the end, for longer than limit. Samples are in the order of their times.
func JudgeProgress(samples []Progress, limit time.Duration) []string {
	var faults tally
	first := map[Place]Progress{}
	told := map[Place]bool{}
	for _, s := range samples {
		f, known := first[s.Place]
		if !known || s.Stable != f.Stable || f.Stable >= f.End {
			first[s.Place], told[s.Place] = s, false
			continue
		}
		if s.At-f.At > limit && !told[s.Place] {
			told[s.Place] = true
			faults.about(s.Place.String(), "stuck", "the last stable offset is %d since %v, the end %d", s.Stable, f.At.Round(time.Millisecond), s.End)
		}
	}
	return faults.lines()
}

// Epoch is an answer that gave a transactional id its producer.
type Epoch struct {
	ID       string
	Producer int64
	Epoch    int16
	Span
}

// Act is something that a producer did in a transaction: ended it, or stored offsets.
type Act struct {
	What, ID string
	Producer int64
	Epoch    int16
	Fate     Fate
	Span
}

// JudgeFences looks for zombies: acts that were taken from a producer after a later one had been given its transactional id.
func JudgeFences(epochs []Epoch, acts []Act) []string {
	var faults tally
	given := byGroup(epochs, func(e *Epoch) string { return e.ID })
	for _, a := range acts {
		if a.Fate != Done {
			continue
		}
		var own, latest *Epoch
		for _, e := range given[a.ID] {
			if !e.before(a.Span) {
				continue
			}
			if e.Producer == a.Producer && e.Epoch == a.Epoch && (own == nil || e.Answered > own.Answered) {
				own = e
			}
			if latest == nil || e.Answered > latest.Answered {
				latest = e
			}
		}
		if own != nil && own.before(latest.Span) && (latest.Producer != own.Producer || latest.Epoch > own.Epoch) {
			faults.about("transactions of "+a.ID, "zombie", "%s of producer %d in epoch %d was taken after producer %d had epoch %d", a.What, a.Producer, a.Epoch, latest.Producer, latest.Epoch)
		}
	}
	return faults.lines()
}
