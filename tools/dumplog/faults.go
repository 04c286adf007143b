package dumplog

import (
	"fmt"
	"io"
	"slices"
)

// faults are what does not fit together in the files that were read: two numbers each, by file. They are told at the
// end, on stderr, and do not change the exit code.
type faults struct {
	index          byFile // index offset, log offset
	timestamps     byFile // index timestamp, log timestamp
	timeOrder      byFile // index timestamp, the one before
	offsetNotFound byFile // index offset, log offset
	gaps           byFile // offset, the one behind
}

type byFile struct {
	names []string
	pairs map[string][][2]int64
}

func (f *byFile) add(name string, a, b int64) {
	if f.pairs == nil {
		f.pairs = map[string][][2]int64{}
	}
	if f.pairs[name] == nil {
		f.names = append(f.names, name)
	}
	f.pairs[name] = append(f.pairs[name], [2]int64{a, b})
}

func (f *byFile) print(w io.Writer, head, line string, backwards bool) {
	for _, name := range f.names {
		fmt.Fprintf(w, head+"\n", name)
		pairs := f.pairs[name]
		if backwards {
			slices.Reverse(pairs)
		}
		for _, p := range pairs {
			fmt.Fprintf(w, line+"\n", p[0], p[1])
		}
	}
}

func (f *faults) print(w io.Writer) {
	f.index.print(w, "Mismatches in :%s", "  Index offset: %d, log offset: %d", true)
	f.timestamps.print(w, "Found timestamp mismatch in :%s", "  Index timestamp: %d, log timestamp: %d", false)
	f.timeOrder.print(w, "Found out of order timestamp in :%s", "  Index timestamp: %d, Previously indexed timestamp: %d", false)
	f.offsetNotFound.print(w, "The following indexed offsets are not found in the log.%.0s", "Indexed offset: %d, found log offset: %d", false)
	f.gaps.print(w, "Non-consecutive offsets in %s", "  %d is followed by %d", true)
}
