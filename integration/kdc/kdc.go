// Package kdc runs MIT Kerberos' server for tests: a realm of its own on a port of the loopback interface, in a folder of the test.
package kdc

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// Realm is the realm's name.
const Realm = "BARNABAS.TEST"

// KDC is a realm with its server.
type KDC struct {
	// Config is where its krb5.conf lies.
	Config string

	folder, admin string
	env           []string
	server        *exec.Cmd
}

const patience = 2 * time.Minute // a machine may be busy

// Start makes a realm, and runs its server until the test ends.
func Start(t testing.TB) *KDC {
	t.Helper()
	server, database := program(t, "krb5kdc"), program(t, "kdb5_util")
	folder := t.TempDir()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(lane.Port(t)))
	k := &KDC{Config: filepath.Join(folder, "krb5.conf"), folder: folder, admin: program(t, "kadmin.local")}
	profile := filepath.Join(folder, "kdc.conf")
	k.write(t, k.Config, fmt.Sprintf(`[libdefaults]
	default_realm = %[1]s
	dns_lookup_kdc = false
	dns_lookup_realm = false
	rdns = false
	udp_preference_limit = 1
[realms]
	%[1]s = {
		kdc = %[2]s
	}
`, Realm, addr))
	k.write(t, profile, fmt.Sprintf(`[kdcdefaults]
	kdc_listen = %[2]s
	kdc_tcp_listen = %[2]s
[realms]
	%[1]s = {
		database_name = %[3]s/principal
		key_stash_file = %[3]s/stash
		acl_file = %[3]s/acl
		max_life = 10h
		default_principal_flags = +preauth
		supported_enctypes = aes256-cts-hmac-sha384-192:normal aes128-cts-hmac-sha256-128:normal aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
	}
[logging]
	kdc = FILE:%[3]s/kdc.log
`, Realm, addr, folder))
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.Config, "KRB5_KDC_PROFILE="+profile)
	k.run(t, "", database, "create", "-s", "-r", Realm, "-P", "master")

	k.server = exec.Command(server, "-n", "-r", Realm)
	k.server.Env = k.env
	lane.Bind(k.server)
	require.NoError(t, k.server.Start())
	t.Cleanup(k.Stop)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		socket, err := net.Dial("tcp", addr)
		if err == nil {
			require.NoError(t, socket.Close())
			return k
		}
		require.True(t, time.Now().Before(deadline), "krb5kdc does not listen: %v", err)
	}
}

// Stop ends the server.
func (k *KDC) Stop() {
	_ = k.server.Process.Kill()
	_ = k.server.Wait() // the second time it only says so
}

// program finds a program of Kerberos; those of administrators are not on everybody's path.
func program(t testing.TB, name string) string {
	t.Helper()
	for _, folder := range []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/lib/mit/sbin"} {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path
		}
	}
	return lane.Program(t, name)
}

func (k *KDC) write(t testing.TB, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

func (k *KDC) run(t testing.TB, input, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdin = k.env, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
}

// Add makes principals with random keys, and gives the file with them.
func (k *KDC) Add(t testing.TB, principals ...string) (keyTable string) {
	t.Helper()
	keyTable = filepath.Join(t.TempDir(), "keytab")
	var commands strings.Builder
	for _, p := range principals {
		fmt.Fprintf(&commands, "addprinc -randkey %s\nktadd -k %s %s\n", p, keyTable, p)
	}
	k.run(t, commands.String(), k.admin, "-r", Realm)
	require.FileExists(t, keyTable)
	return keyTable
}

// Cache gets a ticket by keys, as a person does by kinit, and gives the file that it lies in. It is good for as long as life says, such as 1h.
func (k *KDC) Cache(t testing.TB, keyTable, principal, life string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tickets")
	k.run(t, "", lane.Program(t, "kinit"), "-c", file, "-k", "-t", keyTable, "-l", life, principal)
	return file
}

// Login is the JAAS entry of who has keys.
func Login(keyTable, principal string) string {
	return fmt.Sprintf(`com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="%s" principal="%s";`, keyTable, principal)
}

// LoginByCache is the JAAS entry of who has tickets.
func LoginByCache(file string) string {
	return fmt.Sprintf(`com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true ticketCache="%s";`, file)
}
