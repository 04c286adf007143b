package oauth

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const noSignature = `{"alg":"none"}`

func TestUnsignedTokensAreBelievedAsApacheKafkaDoes(t *testing.T) {
	const ms = "1767225600" // now
	valid := func(more string) string { return unsigned(noSignature, `{"sub":"alice","exp":1767225700`+more+`}`) }
	for _, c := range []struct {
		name, token string
		options     map[string]string
		want        string // who it is, or in brackets what is wrong
	}{
		{"the least", valid(""), nil, "alice"},
		{"with fractions of seconds", unsigned(noSignature, `{"sub":"alice","iat":1767225599.5,"exp":1767225600.5}`), nil, "alice"},
		{"over", unsigned(noSignature, `{"sub":"alice","exp":`+ms+`}`), nil, "[ended]"},
		{"over for less than clocks may differ", unsigned(noSignature, `{"sub":"alice","exp":`+ms+`}`), map[string]string{"unsecuredValidatorAllowableClockSkewMs": "1"}, "alice"},
		{"issued in the future", valid(`,"iat":1767225601`), nil, "[in the future]"},
		{"issued in the near future", valid(`,"iat":1767225601`), map[string]string{"unsecuredValidatorAllowableClockSkewMs": " 1000 "}, "alice"},
		{"issued at its end", unsigned(noSignature, `{"sub":"alice","iat":1767225700,"exp":1767225700}`), map[string]string{"unsecuredValidatorAllowableClockSkewMs": "200000"}, "[ends before]"},
		{"without an end", unsigned(noSignature, `{"sub":"alice"}`), nil, "[when it ends]"},
		{"with an end in words", unsigned(noSignature, `{"sub":"alice","exp":"1767225700"}`), nil, "[claim exp]"},
		{"of nobody", unsigned(noSignature, `{"exp":1767225700}`), nil, "[claim sub]"},
		{"of blanks", unsigned(noSignature, `{"sub":" ","exp":1767225700}`), nil, "[claim sub]"},
		{"by another claim", valid(`,"name":"bob"`), map[string]string{"unsecuredValidatorPrincipalClaimName": "name"}, "bob"},
		{"signed", unsigned(`{"alg":"RS256"}`, `{"sub":"alice","exp":1767225700}`), nil, "[signed]"},
		{"with a signature", valid("") + "AAAA", nil, "[without a signature]"},
		{"of two sections", strings.TrimSuffix(valid(""), "."), nil, "[without a signature]"},
		{"without claims", "e30..", nil, "[without a signature]"},
		{"not in base64", "?." + "e30.", nil, "[base64]"},
		{"not in JSON", unsigned("{", "{}"), nil, "[JSON]"},
		{"a list", unsigned("[]", "[]"), nil, "[JSON]"},
	} {
		u, err := NewUnsecured(told(nil, c.options))
		require.NoError(t, err)
		b, err := u.Validate(c.token, now)
		if want, wrong := strings.CutPrefix(c.want, "["); wrong {
			assert.ErrorContains(t, err, strings.TrimSuffix(want, "]"), c.name)
			assert.ErrorAs(t, err, new(*Refused))
		} else if assert.NoError(t, err, c.name) {
			assert.Equal(t, c.want, b.Subject)
		}
	}
}

func TestAScopeMayBeRequired(t *testing.T) {
	u, err := NewUnsecured(told(nil, map[string]string{"unsecuredValidatorRequiredScope": "write read", "unsecuredValidatorScopeClaimName": "scp"}))
	require.NoError(t, err)
	of := func(scope string) string {
		return unsigned(noSignature, `{"sub":"alice","exp":1767225700,"scp":`+scope+`}`)
	}
	_, err = u.Validate(of(`["read"," write "]`), now)
	assert.NoError(t, err)
	for _, scope := range []string{`"read write"`, `["read"]`, `[]`, `null`} { // a text is one scope
		_, err = u.Validate(of(scope), now)
		var refused *Refused
		require.ErrorAs(t, err, &refused, scope)
		assert.Equal(t, "insufficient_scope", refused.Status)
		assert.Equal(t, "[write, read]", refused.Scope)
	}
	_, err = u.Validate(of(`5`), now)
	assert.ErrorContains(t, err, "claim scp")
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for option, value := range map[string]string{"RequiredScope": `a"b`, "AllowableClockSkewMs": "-1", "AllowableClockSkewMs ": "x"} {
		option = "unsecuredValidator" + strings.TrimSpace(option)
		_, err := NewUnsecured(told(nil, map[string]string{option: value}))
		assert.ErrorContains(t, err, option)
	}
}

func TestATokenThatNobodySignsIsMadeOfOptions(t *testing.T) {
	m, err := newMint(map[string]string{
		"unsecuredLoginStringClaim_sub": "alice", "unsecuredLoginNumberClaim_n": "1.5", "unsecuredLoginListClaim_scope": "|read|write", "unsecuredLoginLifetimeSeconds": "60", "unsecuredLoginExtension_x": "y",
	})
	require.NoError(t, err)
	b := m.token(now)
	assert.Equal(t, now.Add(time.Minute), b.Expires)
	u, err := NewUnsecured(told(nil, map[string]string{"unsecuredValidatorRequiredScope": "write read"}))
	require.NoError(t, err)
	got, err := u.Validate(b.Value, now.Add(59*time.Second))
	require.NoError(t, err)
	assert.Equal(t, b.Value, got.Value)
	assert.Equal(t, "alice", got.Subject)
	assert.True(t, got.Expires.Equal(b.Expires))

	c, err := decodeClaims(strings.Split(b.Value, ".")[1])
	require.NoError(t, err)
	assert.Equal(t, claims{"sub": "alice", "n": 1.5, "scope": []any{"read", "write"}, "iat": float64(now.Unix()), "exp": float64(now.Unix() + 60)}, c)

	for _, wrong := range []map[string]string{
		{}, {"unsecuredLoginStringClaim_sub": " "}, {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginStringClaim_exp": "1"}, {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "x"},
		{"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "NaN"}, {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "long"},
		{"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginPrincipalClaimName": "name"},
	} {
		_, err := newMint(wrong)
		assert.Error(t, err, wrong)
	}
}

func FuzzUnsecured(f *testing.F) {
	f.Add(unsigned(noSignature, `{"sub":"alice","exp":1767225700,"iat":1,"scope":["a"]}`))
	f.Add("..")
	u, err := NewUnsecured(told(nil, nil))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, token string) {
		if b, err := u.Validate(token, now); err == nil {
			require.NotEmpty(t, strings.TrimSpace(b.Subject))
			require.True(t, b.Expires.After(now))
		} else {
			require.ErrorAs(t, err, new(*Refused))
		}
		_, _ = readBearer(token, "scope", "sub")
	})
}
