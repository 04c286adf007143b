package tools

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"barnabas/broker/acl"
)

func TestTokenCallsThatMakeNoSense(t *testing.T) {
	const server = "--bootstrap-server b --command-config f "
	for _, c := range []struct{ args, want string }{
		{"--describe", `Missing required argument "[bootstrap-server]"`},
		{"--bootstrap-server b --describe", `Missing required argument "[command-config]"`},
		{server, "Command must include exactly one action: --create, --renew, --expire or --describe"},
		{server + "--create --describe", "Command must include exactly one action: --create, --renew, --expire or --describe"},
		{server + "--create", `Missing required argument "[max-life-time-period]"`},
		{server + "--renew --renew-time-period -1", `Missing required argument "[hmac]"`},
		{server + "--expire --hmac x", `Missing required argument "[expiry-time-period]"`},
		{server + "--create --max-life-time-period -1 --hmac x", `Option "[create]" can't be used with option "[hmac]"`},
		{server + "--renew --hmac x --renew-time-period 1 --owner-principal User:a", `Option "[renew]" can't be used with option "[owner-principal]"`},
		{server + "--describe --hmac x", `Option "[describe]" can't be used with option "[hmac]"`},
		{server + "--creat", `Exception in thread "main" joptsimple.UnrecognizedOptionException: creat is not a recognized option`},
		{server + "--describe --owner-principal User:a", `Exception in thread "main" org.apache.kafka.common.KafkaException: open f: no such file or directory`},
	} {
		got := runCommand(func(args []string, out, errs *bytes.Buffer) int {
			return DelegationTokens(args, strings.NewReader(""), out, errs)
		}, strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
	}
}

// The lines are those of Kafka's tools; that of 2.8 knows no requester.
func TestTokensArePrintedAsEachReleasePrintsThem(t *testing.T) {
	at := time.Date(2026, 11, 30, 16, 46, 59, 0, time.Local).UnixMilli()
	rows := []tokenRow{{id: "Kkltlx6OT_-WqbpHSyN_1g", hmac: []byte("hmac"), owner: acl.Principal{Type: "User", Name: "alice"}, requester: acl.Principal{Type: "User", Name: "rita"},
		renewers: []acl.Principal{{Type: "User", Name: "bob"}, {Type: "User", Name: "carol"}}, issued: at, expires: at, latest: at}}
	for release, want := range map[string]string{
		"": "\nTOKENID         HMAC                           OWNER           RENEWERS                  ISSUEDATE       EXPIRYDATE      MAXDATE        \n" +
			"Kkltlx6OT_-WqbpHSyN_1g aG1hYw==                       User:alice      [User:bob, User:carol]    2026-11-30T16:46 2026-11-30T16:46 2026-11-30T16:46\n",
		"3.9.1": "\nTOKENID         HMAC                           OWNER           REQUESTER       RENEWERS                  ISSUEDATE       EXPIRYDATE      MAXDATE        \n" +
			"\nKkltlx6OT_-WqbpHSyN_1g aG1hYw==                       User:alice      User:rita       [User:bob, User:carol]    2026-11-30T16:46 2026-11-30T16:46 2026-11-30T16:46\n",
	} {
		t.Setenv("BARNABAS_COMPAT", release)
		var out bytes.Buffer
		printTokens(face{stdout: &out}, rows)
		assert.Equal(t, want, out.String())
	}
}
