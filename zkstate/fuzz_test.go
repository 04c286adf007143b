package zkstate_test

import (
	"bytes"
	"testing"

	. "barnabas/zkstate"
)

// FuzzDecoders gives any bytes to every decoder. Nothing may panic, and what a decoder accepts is a fixed point: encoded
// and read again it is the same bytes.
func FuzzDecoders(f *testing.F) {
	all := families(ACLSince3)
	for _, file := range []string{"kafka-2.8.2-trees.tsv", "kafka-3.9.1-trees.tsv"} {
		for _, l := range lines(f, file) {
			for i, family := range all {
				if l[2] != "null" && family.path.MatchString(l[0]) {
					f.Add(uint8(i), []byte(l[2]))
					break
				}
			}
		}
	}
	for i, family := range all {
		if !family.path.MatchString("/delegation_token/tokens/t") { // the trees have none
			continue
		}
		for _, s := range []string{
			`{"issueTimestamp":1796057212866,"renewers":["User%3Abob","User%3Acarol"],"tokenId":"Kkltlx6OT_-WqbpHSyN_1g","owner":"User%3Aalice","expiryTimestamp":1796143612866,"maxTimestamp":1796662012866,"version":1}`,
			`{"issueTimestamp":1796057219943,"renewers":[],"tokenRequester":"User%3Aal%20ice","tokenId":"rLayUwjwS2GJMSH1qffCdg","owner":"User%3Abob","expiryTimestamp":1796143619943,"maxTimestamp":1796662019943,"version":3}`,
		} {
			f.Add(uint8(i), []byte(s))
		}
	}
	for i, s := range []string{"", "null", "[]", "{}", `{"version":1}`, `{"version":3,"partitions":{"0":[1],"-1":[2],"00":[3]}}`, `{"version":"x"}`,
		`{"features":{"a":{"max_version_level":40000}},"version":2,"status":1}`, `{"version":5,"endpoints":["A://[::1]:9"],"jmx_port":null}`, "TOPIC", "9223372036854775808"} {
		f.Add(uint8(i), []byte(s))
		f.Add(uint8(i+10), []byte(s))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		family := all[int(which)%len(all)]
		once, err := family.reencode("", data)
		if err != nil {
			return
		}
		twice, err := family.reencode("", once)
		if err != nil {
			t.Fatalf("%v: what was read from %q and written as %q is not read again: %v", family.path, data, once, err)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("%v: %q is written as %q and then as %q", family.path, data, once, twice)
		}
	})
}

// FuzzNames: any name survives being made a node's name, and any node's name is read without a panic.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"alice", "a b*%", "ü", "%", "%4", "%zz", "+", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		_, _ = DesanitizeName(name)
		back, err := DesanitizeName(SanitizeName(name))
		if err != nil || back != name {
			t.Fatalf("%q became %q (%v)", name, back, err)
		}
	})
}
