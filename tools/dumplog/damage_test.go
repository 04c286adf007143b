package dumplog

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	logFile   = "00000000000000000000.log"
	indexFile = "00000000000000000000.index"
	timeFile  = "00000000000000000000.timeindex"
	snapFile  = "00000000000000000493.snapshot"
	txnFile   = "00000000000000000194.txnindex"
)

// What both originals say about damaged files; they were asked. <dir> stands for the folder.
func TestDamageIsTold(t *testing.T) {
	patch := func(name string, at int, with ...byte) func(t *testing.T) {
		return func(t *testing.T) { edit(t, name, func(p []byte) []byte { copy(p[at:], with); return p }) }
	}
	cut := func(name string, size int) func(t *testing.T) {
		return func(t *testing.T) {
			edit(t, name, func(p []byte) []byte {
				if size < 0 {
					return p[:len(p)+size]
				}
				return p[:size]
			})
		}
	}
	grow := func(name string, with ...byte) func(t *testing.T) {
		return func(t *testing.T) { edit(t, name, func(p []byte) []byte { return append(p, with...) }) }
	}
	both := func(f ...func(t *testing.T)) func(t *testing.T) {
		return func(t *testing.T) {
			for _, f := range f {
				f(t)
			}
		}
	}
	none := func(*testing.T) {}
	wrongEntry := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 900), 1<<20)
	cases := []struct {
		name    string
		damage  func(t *testing.T)
		args    string // behind --files
		code    int
		outEnds string // last line of stdout
		err28   string
		err39   string // "": as err28
	}{
		{"log cut inside its first batch", cut(logFile, 1000), logFile, 0, "Found 1000 invalid bytes at the end of " + logFile, "", ""},
		{"fewer zeros than the batch lacks", both(cut(logFile, 1000), grow(logFile, make([]byte, 500)...)), logFile, 0, "Found 1500 invalid bytes at the end of " + logFile, "", ""},
		{"zeros behind the last batch", grow(logFile, make([]byte, 500)...), logFile, 1, "",
			"Exception in thread \"main\" org.apache.kafka.common.errors.CorruptRecordException: Found record size 0 smaller than minimum record overhead (14) in file " + logFile + ".", ""},
		{"wrong crc", both(patch(logFile, 18, 0xff), cut(logFile, 1506)), logFile, 0, "crc: 3556759912 isvalid: false", "", ""},
		{"unknown magic", both(patch(logFile, 16, 5), cut(logFile, 1506)), logFile, 0, "magic: 5 compresscodec: none crc: 3551320424 isvalid: true", "", ""},
		{"index cut", cut(indexFile, -3), indexFile, 0, "offset: 224 position: 12104", "", ""},
		{"index cut, checked", cut(indexFile, -3), indexFile + " --index-sanity-check", 1, "Dumping " + indexFile,
			"Exception in thread \"main\" kafka.log.CorruptIndexException: Index file <dir>/" + indexFile + " is corrupt, found 69 bytes which is neither positive nor a multiple of 8.",
			"Exception in thread \"main\" org.apache.kafka.storage.internals.log.CorruptIndexException: Index file <dir>/" + indexFile + " is corrupt, found 69 bytes which is neither positive nor a multiple of 8"},
		{"index ends in zeros", grow(indexFile, make([]byte, 16)...), indexFile, 0, "offset: 249 position: 13609", "", ""},
		{"index offset wrong", patch(indexFile, 2, 0, 5), indexFile + " --verify-index-only", 0, "Dumping " + indexFile,
			"Mismatches in :<dir>/" + indexFile + "\n  Index offset: 5, log offset: 49", ""},
		{"index points behind the log", grow(indexFile, wrongEntry...), indexFile, 1, "offset: 249 position: 13609",
			"Exception in thread \"main\" java.lang.IllegalArgumentException: Slice from position 1048576 exceeds end position of FileRecords(size=15111, file=<dir>/" + logFile + ", start=0, end=2147483647)", ""},
		{"time index timestamp wrong", patch(timeFile, 7, 1), timeFile, 0, "timestamp: 1700000249000 offset: 249",
			"Found timestamp mismatch in :<dir>/" + timeFile + "\n  Index timestamp: 1700000048897, log timestamp: 1700000049000", ""},
		{"time index offsets wrong", both(patch(timeFile, 10, 0, 3), grow(timeFile, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x27, 0x0f)), timeFile, 0, "timestamp: 1 offset: 9999",
			"The following indexed offsets are not found in the log.\nIndexed offset: 3, found log offset: 24\nIndexed offset: 9999, found log offset: -1", ""},
		{"time index cut, checked", cut(timeFile, -5), timeFile + " --index-sanity-check", 1, "Dumping " + timeFile,
			"Exception in thread \"main\" kafka.log.CorruptIndexException: Time index file <dir>/" + timeFile + " is corrupt, found 103 bytes which is neither positive nor a multiple of 12.",
			"Exception in thread \"main\" org.apache.kafka.storage.internals.log.CorruptIndexException: Time index file <dir>/" + timeFile + " is corrupt, found 103 bytes which is neither positive nor a multiple of 12"},
		{"snapshot crc, and on to the next file", patch(snapFile, 12, 0xff), snapFile + "," + txnFile, 0, "version: 0 producerId: 1 firstOffset: 287 lastOffset: 327 lastStableOffset: 328",
			"Snapshot is corrupt (CRC is no longer valid). Stored crc: 3921746743. Computed crc: 1151126530", ""},
		{"snapshot version", patch(snapFile, 1, 7), snapFile, 0, "Dumping " + snapFile, "Snapshot contained an unknown file version 7", ""},
		{"snapshot cut in an entry", cut(snapFile, 30), snapFile, 0, "Dumping " + snapFile,
			"Snapshot failed schema validation: Error reading field 'producer_entries': Error reading field 'last_offset': java.nio.BufferUnderflowException", ""},
		{"snapshot cut in its head", cut(snapFile, 5), snapFile, 0, "Dumping " + snapFile,
			"Snapshot failed schema validation: Error reading field 'crc': java.nio.BufferUnderflowException", ""},
		{"transaction index cut", cut(txnFile, -4), txnFile, 0, "version: 0 producerId: 1 firstOffset: 164 lastOffset: 204 lastStableOffset: 205", "", ""},
		{"no such file", none, "no/" + logFile, 1, "tarting offset: 0", "Exception in thread \"main\" java.nio.file.NoSuchFileException: no/" + logFile, ""},
		{"unknown kind of file", none, "x.txt", 0, "Dumping x.txt", "Ignoring unknown file x.txt", ""},
		{"name without offset", func(t *testing.T) { require.NoError(t, os.Rename(logFile, "abc.log")) }, "abc.log", 1, "Dumping abc.log",
			"Exception in thread \"main\" java.lang.NumberFormatException: For input string: \"abc\"", ""},
		{"not the offsets topic", cut(logFile, 1600), logFile + " --offsets-decoder", 1, "headerKeys: [h,nul]",
			"Exception in thread \"main\" org.apache.kafka.common.KafkaException: Failed to decode message using offset topic decoder (message had a missing key)",
			"Exception in thread \"main\" java.lang.RuntimeException: Failed to decode message at offset 0 using offset topic decoder (message had a missing key)"},
		{"not the transactions topic", cut(logFile, 1600), logFile + " --transaction-log-decoder", 1, "headerKeys: [h,nul]",
			"Exception in thread \"main\" java.lang.NullPointerException: record at offset 0 has no key", ""},
		{"values as numbers", cut(logFile, 1506), logFile + " --value-decoder-class kafka.serializer.LongDecoder --skip-record-metadata", 0, "| key: key-24 payload: 8530218420680863792", "", ""},
	}
	for _, c := range cases {
		for _, tool := range []string{"2.8.2", "3.9.1"} {
			t.Run(tool+"/"+c.name, func(t *testing.T) {
				inDataDir(t, "3.9.1")
				dir := t.TempDir()
				for _, name := range []string{"fmt-v2-none-0/" + logFile, "fmt-v2-none-0/" + indexFile, "fmt-v2-none-0/" + timeFile, "txn-0/" + snapFile, "txn-0/" + txnFile} {
					data, err := os.ReadFile(filepath.Join("clean", name))
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o644))
				}
				t.Chdir(dir)
				c.damage(t)
				t.Setenv("BARNABAS_COMPAT", tool)
				var out, errs bytes.Buffer
				code := Run(append([]string{"--files"}, strings.Fields(c.args)...), &out, &errs)
				require.Equal(t, c.code, code)
				want := c.err28
				if tool == "3.9.1" && c.err39 != "" {
					want = c.err39
				}
				here, err := os.Getwd()
				require.NoError(t, err)
				require.Equal(t, strings.ReplaceAll(want, "<dir>", here), strings.TrimSuffix(errs.String(), "\n"))
				got := strings.TrimSuffix(out.String(), "\n")
				require.True(t, strings.HasSuffix(strings.ToLower(got), strings.ToLower(c.outEnds)), got)
			})
		}
	}
}

func edit(t *testing.T, name string, f func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, f(data), 0o644))
}

func TestWrongCalls(t *testing.T) {
	cases := []struct {
		args []string
		says string
	}{
		{nil, intro},
		{[]string{"--help"}, intro},
		{[]string{"--print-data-log"}, "Missing required argument \"[files]\""},
		{[]string{"--files"}, "Option files requires an argument"},
		{[]string{"--file", "x.log"}, "file is not a recognized option"},
		{[]string{"--files", "x.log", "--max-bytes", "many"}, "Cannot parse argument 'many' of option max-bytes"},
		{[]string{"--files", "x.log", "--value-decoder-class", "com.example.Secret"}, "--value-decoder-class com.example.Secret: Java classes cannot be loaded here; leave the option out to print strings"},
		{[]string{"--files", "x.log", "--cluster-metadata-decoder"}, "records of KRaft's metadata log and of tiered storage are not supported"},
	}
	for _, c := range cases {
		var out, errs bytes.Buffer
		require.Equal(t, 1, Run(c.args, &out, &errs))
		require.Empty(t, out.String())
		first, help, _ := strings.Cut(errs.String(), "\n")
		require.Equal(t, c.says, first)
		require.Contains(t, help, "--index-sanity-check")
	}
	var out, errs bytes.Buffer
	require.Zero(t, Run([]string{"--version"}, &out, &errs))
	require.Empty(t, errs.String())
	require.NotEmpty(t, out.String())
}

func TestBytesThatAreNoTextArePrintedAsJavaPrintsThem(t *testing.T) {
	cases := map[string]string{
		"plain": "plain", "é世😀": "é世😀",
		"\xff": "\ufffd", "a\xe4\xb8": "a\ufffd", "\xe4\xb8z": "\ufffdz", "\xf0\x9f\x98": "\ufffd", "\xf0\x9f\x98\xf0": "\ufffd\ufffd",
		"\xed\xa0\x80": "\ufffd", "\xed\xa0A": "\ufffdA", "\xed\xa0": "\ufffd", "\xc0\x80": "\ufffd\ufffd", "\xe0\x80\x80": "\ufffd\ufffd\ufffd", "\xf4\x90\x80\x80": "\ufffd\ufffd\ufffd\ufffd",
		"\x80\x80": "\ufffd\ufffd",
	}
	for in, want := range cases {
		require.Equal(t, want, javaString([]byte(in)), "%q", in)
	}
}
