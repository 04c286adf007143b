package secret

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const theirs = "sécret" // the secret of testdata

// What the passwords of testdata/kafka-3.9.1.txt are, one a line as Kafka's own encoder wrote them: each key factory and cipher is there.
var passwords = []string{"sesame1", "", "päss, w:rd=€ 😀", "sesame1", ""}

func encoded(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/kafka-3.9.1.txt")
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func ours() Encoder {
	return Encoder{Secret: theirs, Cipher: cbc, KeyBits: 128, Iterations: 1024}
}

func TestWhatKafkaEncryptedIsRead(t *testing.T) {
	lines := encoded(t)
	require.Len(t, lines, len(passwords))
	for i, line := range lines {
		got, err := ours().Decode(line)
		require.NoError(t, err, line)
		assert.Equal(t, passwords[i], got, line)
	}
}

func TestAnotherSecretReadsNothing(t *testing.T) {
	other := ours()
	other.Secret = "another"
	for i, line := range encoded(t) {
		got, err := other.Decode(line)
		if assert.Error(t, err, line) && passwords[i] != "" {
			assert.NotContains(t, err.Error(), passwords[i])
		}
		assert.Empty(t, got)
	}
}

func TestWhatIsEncryptedIsReadAgainAndWrittenAsKafkaDoes(t *testing.T) {
	for _, line := range encoded(t) {
		var names []string
		e := ours()
		for pair := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(pair, ":")
			names = append(names, name)
			switch name {
			case keyFactory:
				e.KeyFactory = value
			case keyCipher:
				e.Cipher = value
			}
		}
		for _, password := range passwords {
			text, err := e.Encode(password)
			require.NoError(t, err)
			again, err := ours().Decode(text)
			require.NoError(t, err)
			assert.Equal(t, password, again)
			var own []string
			for pair := range strings.SplitSeq(text, ",") {
				name, _, _ := strings.Cut(pair, ":")
				own = append(own, name)
			}
			assert.Equal(t, names, own)
			another, err := e.Encode(password)
			require.NoError(t, err)
			assert.NotEqual(t, text, another, "nobody sees that two passwords are the same")
		}
	}
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	require.NoError(t, ours().Check())
	for _, change := range []func(*Encoder){
		func(e *Encoder) { e.Cipher = "DES/ECB/NoPadding" },
		func(e *Encoder) { e.KeyFactory = "PBKDF2WithHmacMD5" },
		func(e *Encoder) { e.KeyBits = 64 },
		func(e *Encoder) { e.Iterations = most + 1 },
		func(e *Encoder) { e.Iterations = 0 },
	} {
		e := ours()
		change(&e)
		assert.Error(t, e.Check(), "%+v", e)
		_, err := e.Encode("x")
		assert.Error(t, err, "%+v", e)
	}
}

func FuzzDecode(f *testing.F) {
	for _, line := range encoded(f) {
		f.Add(line)
	}
	f.Add("")
	f.Add("initializationVector:AAAA,keyLength:128,salt:AAAA,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:1,passwordLength:0,encryptedPassword:AAAA")
	f.Add("initializationVector:AAAA,keyLength:128,salt:AAAA,cipherAlgorithm:AES/GCM/NoPadding,authenticationTagLength:128,iterations:1,passwordLength:0,encryptedPassword:AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "iterations:") && !strings.Contains(text, "iterations:1,") {
			return // what takes long tells nothing more
		}
		if password, err := ours().Decode(text); err == nil {
			again, err := ours().Encode(password)
			require.NoError(t, err)
			_, err = ours().Decode(again)
			require.NoError(t, err)
		}
	})
}
