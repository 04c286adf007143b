package ssl

import (
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// attributes are the keywords that RFC 2253 gives to attribute types. Others are written as numbers.
var attributes = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
}

type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// DistinguishedName writes a DER name as Java's X500Principal.getName does, which is Kafka's name of the principal: RFC 2253, the
// last part first.
func DistinguishedName(der []byte) (string, error) {
	var parts []asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &parts); err != nil || len(rest) > 0 {
		return "", fmt.Errorf("distinguished name: %w", ErrMalformed)
	}
	var text strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		var set []attribute
		if rest, err := asn1.UnmarshalWithParams(parts[i].FullBytes, &set, "set"); err != nil || len(rest) > 0 {
			return "", fmt.Errorf("distinguished name: %w", ErrMalformed)
		}
		if i < len(parts)-1 {
			text.WriteByte(',')
		}
		for j, a := range set {
			if j > 0 {
				text.WriteByte('+')
			}
			text.WriteString(a.text())
		}
	}
	return text.String(), nil
}

func (a attribute) text() string {
	kind := a.Type.String()
	keyword, known := attributes[kind]
	if known {
		kind = keyword
	}
	if value, readable := stringValue(a.Value); known && readable {
		return kind + "=" + escape(value)
	}
	return kind + "=#" + hex.EncodeToString(a.Value.FullBytes)
}

// stringValue reads the kinds of strings that names are made of.
func stringValue(v asn1.RawValue) (string, bool) {
	if v.Class != asn1.ClassUniversal {
		return "", false
	}
	switch v.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String:
		return string(v.Bytes), utf8.Valid(v.Bytes)
	}
	return "", false
}

// escape puts backslashes where Java does: before the characters that RFC 2253 names, before = and #, and before spaces at both ends.
func escape(s string) string {
	var out strings.Builder
	first := len(s) - len(strings.TrimLeft(s, " "))
	end := len(strings.TrimRight(s, " "))
	for i, r := range s {
		if strings.ContainsRune(`,=+<>#;"\`, r) || r == ' ' && (i < first || i >= end) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
