package dumplog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The data directories that Apache Kafka 2.8.2 and 3.9.1 wrote lie with the package that reads their records.
const dataDirs = "../../broker/record/testdata"

// unpack extracts an archive below dir.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := filepath.Join(dir, h.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
}

// inDataDir makes a copy of a version's data directory, named clean, and works beside it.
func inDataDir(t *testing.T, version string) {
	t.Helper()
	dir := t.TempDir()
	archive, err := filepath.Abs(filepath.Join(dataDirs, version+"-clean.tar.gz"))
	require.NoError(t, err)
	unpack(t, archive, dir)
	t.Chdir(dir)
}

func run(t *testing.T, compat string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("BARNABAS_COMPAT", compat)
	var out, errs bytes.Buffer
	code = Run(args, &out, &errs)
	dir, err := os.Getwd()
	require.NoError(t, err)
	return out.String(), strings.ReplaceAll(errs.String(), dir+"/", ""), code
}

// files lists what lies below the data directory, by the end of the name.
func files(t *testing.T, suffixes ...string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir("clean", func(name string, d fs.DirEntry, err error) error {
		if slices.Contains(suffixes, filepath.Ext(name)) {
			out = append(out, name)
		}
		return err
	}))
	slices.Sort(out)
	return out
}

func TestEverySegmentIsPrintedAsKafkaPrintsIt(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			answers := t.TempDir()
			unpack(t, "testdata/"+version+"-dump.tar.gz", answers)
			inDataDir(t, version)
			compared := 0
			for _, name := range files(t, ".log") {
				want, err := os.ReadFile(filepath.Join(answers, "dump", filepath.Base(filepath.Dir(name))+"-"+strings.TrimSuffix(filepath.Base(name), ".log")+".txt"))
				require.NoError(t, err)
				got, _, code := run(t, version, "--files", name, "--print-data-log")
				require.Zero(t, code)
				requireSameText(t, string(want), got)
				compared++
			}
			require.GreaterOrEqual(t, compared, 17)
		})
	}
}

// requireSameText compares long texts and shows the first line that differs.
func requireSameText(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		require.Equal(t, w[i], g[i], "line %d", i+1)
	}
	require.Len(t, g, len(w))
}

// inOrder sorts the paragraphs of what is said about files: the original says them in the order of a hash.
func inOrder(text string) string {
	paragraphs := strings.SplitAfter(strings.ReplaceAll(text, "\n  ", "\r"), "\n")
	slices.Sort(paragraphs)
	return strings.ReplaceAll(strings.Join(paragraphs, ""), "\r", "\n  ")
}

// kafka-answers.tar.gz holds what the tools of 2.8.2 and 3.9.1 print about the data directories of both:
// <tool>-<directory>-<case>.out and .err (without lines about logging).
func TestEveryKindOfFileAndFlagIsAnsweredAsKafkaAnswers(t *testing.T) {
	answers := t.TempDir()
	unpack(t, "testdata/kafka-answers.tar.gz", answers)
	indexes := []string{".index", ".timeindex"}
	cases := []struct {
		name   string
		kinds  []string
		only   []string // parts of names, any; none: all
		args   []string
		toolOf string
	}{
		{name: "index", kinds: []string{".index"}},
		{name: "timeindex", kinds: []string{".timeindex"}},
		{name: "sanity", kinds: indexes, args: []string{"--index-sanity-check"}},
		{name: "verify", kinds: indexes, args: []string{"--verify-index-only"}},
		{name: "snapshot", kinds: []string{".snapshot"}},
		{name: "txnindex", kinds: []string{".txnindex"}},
		{name: "offsets", kinds: []string{".log"}, only: []string{"consumer_offsets"}, args: []string{"--offsets-decoder"}},
		{name: "transactions", kinds: []string{".log"}, only: []string{"transaction_state"}, args: []string{"--transaction-log-decoder"}},
		{name: "shallow", kinds: []string{".log"}},
		{name: "deep", kinds: []string{".log"}, args: []string{"--deep-iteration"}},
		{name: "skip", kinds: []string{".log"}, only: []string{"txn", "fmt", "compacted"}, args: []string{"--print-data-log", "-skip-record-metadata"}},
		{name: "maxbytes", kinds: []string{".log"}, args: []string{"--max-bytes=2000"}, toolOf: "3.9.1"},
	}
	for _, dir := range []string{"2.8.2", "3.9.1"} {
		t.Run(dir, func(t *testing.T) {
			inDataDir(t, dir)
			for _, tool := range []string{"2.8.2", "3.9.1"} {
				for _, c := range cases {
					if c.toolOf != "" && c.toolOf != tool {
						continue
					}
					t.Run(tool+"/"+c.name, func(t *testing.T) {
						var names []string
						for _, name := range files(t, c.kinds...) {
							if len(c.only) == 0 || slices.ContainsFunc(c.only, func(part string) bool { return strings.Contains(name, part) }) {
								names = append(names, name)
							}
						}
						stem := filepath.Join(answers, tool+"-"+dir+"-"+c.name)
						want, err := os.ReadFile(stem + ".out")
						require.NoError(t, err)
						wantErr, _ := os.ReadFile(stem + ".err") // not there if nothing was said
						out, errs, code := run(t, tool, append([]string{"--files", strings.Join(names, ",")}, c.args...)...)
						require.Zero(t, code)
						requireSameText(t, string(want), out)
						requireSameText(t, inOrder(string(wantErr)), inOrder(errs))
					})
				}
			}
		})
	}
}
