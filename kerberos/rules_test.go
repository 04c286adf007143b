package kerberos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// ruleCases are lists of rules as sasl.kerberos.principal.to.local.rules has them (none has a comma inside), and what they make of principals: "" where none applies.
var ruleCases = []struct {
	rules string
	names map[string]string
}{
	{"DEFAULT", map[string]string{"alice@EXAMPLE.COM": "alice", "kafka/h.example.com@EXAMPLE.COM": "kafka", "alice@OTHER": "", "Alice@EXAMPLE.COM": "Alice"}},
	{"RULE:[1:$1@$0](.*@OTHER)s/@.*//,DEFAULT", map[string]string{"alice@OTHER": "alice", "alice@EXAMPLE.COM": "alice", "kafka/h@OTHER": "", "alice@XOTHER": ""}},
	{"RULE:[2:$1](kafka)s/^.*$/broker/,RULE:[2:$1-$2]", map[string]string{"kafka/h@ANY": "broker", "http/h.x@ANY": "http-h.x", "alice@EXAMPLE.COM": ""}},
	{"RULE:[1:$1]/L", map[string]string{"ALICE@X": "alice"}},
	{"RULE:[1:$1]/U", map[string]string{"alice@X": "ALICE"}},
	{"RULE:[1:$1]L", map[string]string{"ALICE@X": "alice"}},
	{"RULE:[1:$1@$0](.*@X)s/@X//U", map[string]string{"alice@X": "ALICE"}},
	{"RULE:[1:$1]s/a/b/", map[string]string{"banana@X": "bbnana"}},
	{"RULE:[1:$1]s/a/b/g", map[string]string{"banana@X": "bbnbnb"}},
	{"RULE:[1:$1]s/a/b/g/U", map[string]string{"banana@X": "BBNBNB"}},
	{"RULE:[1:$1]s/(.)(.*)/$2$1/", map[string]string{"alice@X": "licea"}},
	{"RULE:[1:$1]s/(?<first>.)(.*)/${first}/", map[string]string{"alice@X": "a"}},
	{`RULE:[1:$1]s/a/\$1/`, map[string]string{"alice@X": "$1lice"}},
	{"RULE:[1:$1@$0]", map[string]string{"alice@X": ""}},
	{"RULE:[1:$1@$0],DEFAULT", map[string]string{"alice@EXAMPLE.COM": ""}},
	{"RULE:[1:$2]", map[string]string{"alice@X": ""}},
	{"RULE:[1:$]", map[string]string{"alice@X": ""}},
	{"RULE:[1:$x]", map[string]string{"alice@X": ""}},
	{"RULE:[1:$01]", map[string]string{"alice@X": "alice"}},
	{"RULE:[1:$99999999999]", map[string]string{"alice@X": ""}},
	{"RULE:[2:$2.$1]", map[string]string{"kafka/h@X": "h.kafka"}},
	{"RULE:[1:fixed]", map[string]string{"alice@X": "fixed"}},
	{"RULE:[0:$0]", map[string]string{"alice@X": "", "a/b@X": ""}},
	{"RULE:[1:$1](a|b)s/a/x/", map[string]string{"a@X": "x", "b@X": "b", "ab@X": ""}},
	{"RULE:[1:$1]()", map[string]string{"alice@X": ""}},
	{"RULE:[1:$1]s//x/", map[string]string{"alice@X": "xalice"}},
	{"RULE:[1:$1]s/e$//", map[string]string{"alice@X": "alic"}},
}

var badRules = []string{"", "default", "DEFAULT/L", "DEFAULT ", " DEFAULT", "RULE:", "RULE:[1:$1", "RULE:[:$1]", "RULE:[x:$1]", "RULE:[1:$1]s/a/b", "RULE:[1:$1]s/a/b/x", "RULE:[1:$1]/X", "RULE:[1:$1](", "RULE:[1:$1](a)(b)", "RULE:[1:$1](+)", "RULE:[1:$1]s/(/x/"}

func parseName(t testing.TB, text string) Name {
	t.Helper()
	n, err := ParseName(text, "")
	require.NoError(t, err)
	return n
}

func TestPrincipalsAreCalledAsTheRulesSay(t *testing.T) {
	for _, c := range ruleCases {
		rules, err := ParseRules(strings.Split(c.rules, ","), realm)
		require.NoError(t, err, c.rules)
		for principal, want := range c.names {
			got, err := rules.ShortName(parseName(t, principal))
			assert.Equal(t, want, got, "%s of %s", principal, c.rules)
			assert.Equal(t, want == "", err != nil, "%s of %s: %v", principal, c.rules, err)
		}
	}
}

func TestRulesThatAreNoneAreRefused(t *testing.T) {
	for _, rule := range badRules {
		_, err := ParseRules([]string{rule}, realm)
		assert.ErrorContains(t, err, "sasl.kerberos.principal.to.local.rules", rule)
	}
	for _, rule := range []string{"RULE:[1:$1]s/a/$1/", "RULE:[1:$1]s/a/$/", "RULE:[1:$1]s/a/${b}/"} { // Kafka finds out when somebody comes
		_, err := ParseRules([]string{rule}, realm)
		assert.ErrorContains(t, err, "a group that is not there", rule)
	}
}

// TestRulesAreThoseOfKafka asks Kafka's own class for each case of this file.
func TestRulesAreThoseOfKafka(t *testing.T) {
	lib := lane.KafkaJars(t, "3.9.1")
	var asked []string
	want := map[string]string{}
	add := func(rules, principal, answer string) {
		asked = append(asked, rules, principal)
		want[fmt.Sprintf("%d", len(asked)/2)] = answer
	}
	for _, c := range ruleCases {
		for principal, answer := range c.names {
			add(c.rules, principal, answer)
		}
	}
	for _, rule := range badRules {
		if rule != "" { // which is no argument
			add(rule, "alice@X", "!")
		}
	}
	source := filepath.Join(t.TempDir(), "Ask.java")
	require.NoError(t, os.WriteFile(source, []byte(`
		import java.util.Arrays;
		import org.apache.kafka.common.security.kerberos.*;
		public class Ask {
			public static void main(String[] a) {
				for (int i = 0; i < a.length; i += 2) {
					String answer;
					try {
						KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules("EXAMPLE.COM", Arrays.asList(a[i].split(",")));
						try { answer = namer.shortName(KerberosName.parse(a[i + 1])); } catch (Exception e) { answer = ""; }
					} catch (Exception e) { answer = "!"; }
					System.out.println((i / 2 + 1) + "\t" + answer);
				}
			}
		}`), 0o600))
	out, err := exec.CommandContext(t.Context(), lane.Java(t), append([]string{"-cp", filepath.Join(lib, "*"), source}, asked...)...).Output()
	require.NoError(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(out)) {
		number, answer, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		got[number] = answer
	}
	for number, answer := range want {
		var n int
		_, err := fmt.Sscan(number, &n)
		require.NoError(t, err)
		assert.Equal(t, answer, got[number], "%v", asked[2*n-2:2*n])
	}
}

func TestNamesOfOtherFormsAreNotTaken(t *testing.T) {
	for text, want := range map[string]Name{"alice": {"alice", "", realm}, "kafka/h": {"kafka", "h", realm}, "kafka/h@X": {"kafka", "h", "X"}} {
		n, err := ParseName(text, realm)
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}
	for _, text := range []string{"", "@X", "a/b/c@X", "a/@X", "/b@X", "a@", "a@b@c", "a@X/Y"} {
		_, err := ParseName(text, realm)
		assert.Error(t, err, text)
	}
	_, err := ParseName("alice", "")
	assert.Error(t, err)
	odd := alice.principal()
	odd.NameString = []string{"kafka/h@" + realm}
	_, err = nameOf(odd, "X")
	assert.Error(t, err, "a name that looks like another's")
}

func FuzzRules(f *testing.F) {
	for _, c := range ruleCases {
		for principal := range c.names {
			f.Add(c.rules, principal)
		}
	}
	f.Fuzz(func(t *testing.T, rules, principal string) {
		parsed, err := ParseRules(strings.Split(rules, ","), realm)
		n, noName := ParseName(principal, realm)
		if err != nil || noName != nil {
			return
		}
		if short, err := parsed.ShortName(n); err == nil && (short == "" || strings.ContainsAny(short, "/@")) {
			t.Fatalf("%q is no name", short)
		}
	})
}
