package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kept is a run that once failed: what was found by it is mended, and it is replayed for ever.
type kept struct {
	Scenario string `json:"scenario,omitempty"`
	Seed     uint64 `json:"seed"`
	Drop     []int  `json:"drop,omitempty"`  // faults and works left out, by number
	Plant    string `json:"plant,omitempty"` // of the zoo
	Found    string `json:"found"`
}

func (k kept) run() (*Sim, error) {
	drop := map[int]bool{}
	for _, n := range k.Drop {
		drop[n] = true
	}
	return runScenario(k.Seed, nil, k.Plant, drop, scenarios[k.Scenario])
}

// shrink leaves out faults and works of a failing run, many at once as long as that goes, then one by one, and keeps to
// what still fails in the same way. It gives up after a number of runs.
func shrink(k kept, runs int) kept {
	s, err := k.run()
	if err == nil {
		return k
	}
	kind := kindOf(err)
	k.Found = err.Error()
	left := s.happened
	for size := (len(left) + 1) / 2; size > 0 && runs > 0; {
		smaller := false
		for at := 0; at < len(left) && runs > 0; {
			end := min(at+size, len(left))
			try := k
			try.Drop = append(append([]int{}, k.Drop...), left[at:end]...)
			runs--
			s, err := try.run()
			if err != nil && kindOf(err) == kind {
				try.Found = err.Error()
				k, left, smaller = try, s.happened, true
				continue
			}
			at = end
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return k
}

// kindOf is what was broken, without the circumstances.
func kindOf(err error) string {
	text := err.Error()
	if _, after, found := strings.Cut(text, ": "); found { // seed and time
		text = after
	}
	kind, _, _ := strings.Cut(text, ":")
	return kind
}

// readKept reads what keep wrote.
func readKept(path string) (k kept, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(data, &k)
}

const seedsDir = "testdata/seeds"

// keep writes a run into a folder.
func keep(dir string, k kept) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.TrimPrefix(fmt.Sprintf("%s-%d.json", k.Scenario, k.Seed), "-"))
	return path, os.WriteFile(path, append(data, '\n'), 0o644)
}
