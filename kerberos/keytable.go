package kerberos

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
)

// keyTable is a key table in a file. It is read anew when the file has become another one: keys are changed while their owner runs.
type keyTable struct {
	file string

	mu      sync.Mutex
	table   *keytab.Keytab
	written time.Time
	size    int64
}

// maxKeyTable bounds a file of keys.
const maxKeyTable = 16 << 20

// read returns the keys, as they are now. A file that is not there or cannot be read leaves the keys of before.
func (k *keyTable) read() (*keytab.Keytab, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.file)
	if err == nil && (k.table == nil || !info.ModTime().Equal(k.written) || info.Size() != k.size) {
		var table *keytab.Keytab
		if table, err = load(k.file, info.Size()); err == nil {
			k.table, k.written, k.size = table, info.ModTime(), info.Size()
		}
	}
	if k.table == nil {
		return nil, err
	}
	return k.table, nil
}

func load(file string, size int64) (*keytab.Keytab, error) {
	if size > maxKeyTable {
		return nil, fmt.Errorf("%s: a key table of %d bytes", file, size)
	}
	var table *keytab.Keytab
	err := guarded(func() (err error) {
		table, err = keytab.Load(file)
		return err
	})
	if err != nil {
		if _, notThere := os.Stat(file); notThere != nil {
			return nil, notThere
		}
		return nil, fmt.Errorf("%s is no key table", file) // the library's error quotes it
	}
	return table, nil
}

// check tells whether there is a key of a principal that can be used.
func (k *keyTable) check(n Name) error {
	table, err := k.read()
	if err != nil {
		return err
	}
	others := map[string]bool{}
	old := false
	var known []string
	for _, e := range table.Entries {
		if name := e.Principal.String(); name != n.String() {
			if !others[name] {
				others[name], known = true, append(known, name)
			}
		} else if modern(e.Key.KeyType) {
			return nil
		} else {
			old = true
		}
	}
	if old {
		return fmt.Errorf("%s: %s has only keys of DES or RC4, and AES is served", k.file, n)
	}
	return fmt.Errorf("%s has no key of %s, but of %s", k.file, n, strings.Join(known, ", "))
}
