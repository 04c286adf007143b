package kerberos

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// What the messages of the exchange are, by the two bytes before them (RFC 4121, 4.1).
var (
	requestToken = [2]byte{0x01, 0x00}
	replyToken   = [2]byte{0x02, 0x00}
	errorToken   = [2]byte{0x03, 0x00}
)

// mechanism is how Kerberos 5 is named among the mechanisms of GSS-API: the object identifier 1.2.840.113554.1.2.2.
var mechanism = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

const contextTag = 0x60 // of the frame around a message: application 0, constructed

var errToken = errors.New("not a token of Kerberos 5")

// frame puts a message into a token: 0x60, length, mechanism, kind, message (RFC 2743, 3.1).
func frame(kind [2]byte, message []byte) []byte {
	length := len(mechanism) + len(kind) + len(message)
	out := []byte{contextTag}
	switch {
	case length < 0x80:
		out = append(out, byte(length))
	case length < 1<<16:
		out = append(out, 0x82, byte(length>>8), byte(length))
	default:
		out = append(out, 0x84, byte(length>>24), byte(length>>16), byte(length>>8), byte(length))
	}
	out = append(out, mechanism...)
	out = append(out, kind[:]...)
	return append(out, message...)
}

// unframe gives the kind and the message of a token.
func unframe(token []byte) (kind [2]byte, message []byte, err error) {
	if len(token) < 2 || token[0] != contextTag {
		return kind, nil, errToken
	}
	length, rest := int(token[1]), token[2:]
	if length >= 0x80 {
		digits := length - 0x80
		if digits < 1 || digits > 4 || len(rest) < digits {
			return kind, nil, errToken
		}
		length = 0
		for _, b := range rest[:digits] {
			length = length<<8 | int(b)
		}
		rest = rest[digits:]
	}
	rest, ours := bytes.CutPrefix(rest, mechanism)
	if !ours || len(rest)+len(mechanism) != length || len(rest) < len(kind) {
		return kind, nil, errToken
	}
	return [2]byte(rest), rest[len(kind):], nil
}

// side is whose tokens a key protects.
type side struct {
	flag  byte
	usage uint32
}

var (
	initiator = side{0, keyusage.GSSAPI_INITIATOR_SEAL}
	acceptor  = side{1, keyusage.GSSAPI_ACCEPTOR_SEAL}
)

// Flags of a wrapped message beside the one that tells the side.
const (
	sealedFlag = 2
	subkeyFlag = 4 // the key is the one that the acceptor chose
)

// contextKey protects what follows the first two messages.
type contextKey struct {
	types.EncryptionKey
	chosen bool // by the acceptor
}

// wrap protects a message against change, without hiding it (RFC 4121, 4.2.6.2).
func (k contextKey) wrap(from side, sequence uint64, message []byte) ([]byte, error) {
	cipher, err := crypto.GetEtype(k.KeyType)
	if err != nil {
		return nil, err
	}
	token := gssapi.WrapToken{Flags: from.flag, EC: uint16(cipher.GetHMACBitLength() / 8), SndSeqNum: sequence, Payload: message}
	if k.chosen {
		token.Flags |= subkeyFlag
	}
	if err := token.SetCheckSum(k.EncryptionKey, from.usage); err != nil {
		return nil, err
	}
	return token.Marshal()
}

// unwrap gives the message of a token that the other side protected. Its number is not looked at: some clients begin at 0 whatever they said before. A token of another exchange is by another
// key, or follows a request that is not taken twice.
func (k contextKey) unwrap(from side, token []byte) ([]byte, error) {
	if len(token) < gssapi.HdrLen {
		return nil, fmt.Errorf("a wrapped message of %d bytes", len(token))
	}
	if token[2]&sealedFlag != 0 {
		return nil, errors.New("an encrypted message, where a plain one belongs")
	}
	// The header tells by how much the rest was rotated to the right.
	rest := token[gssapi.HdrLen:]
	if turn := int(binary.BigEndian.Uint16(token[6:])); len(rest) > 0 && turn%len(rest) != 0 {
		turn %= len(rest)
		token = bytes.Join([][]byte{token[:gssapi.HdrLen], rest[turn:], rest[:turn]}, nil)
	}
	var wrapped, own gssapi.WrapToken
	if err := wrapped.Unmarshal(token, from == acceptor); err != nil {
		return nil, err
	}
	own = gssapi.WrapToken{Flags: wrapped.Flags, SndSeqNum: wrapped.SndSeqNum, Payload: wrapped.Payload}
	if err := own.SetCheckSum(k.EncryptionKey, from.usage); err != nil {
		return nil, err
	}
	if !hmac.Equal(own.CheckSum, wrapped.CheckSum) {
		return nil, errors.New("a wrapped message whose checksum does not hold")
	}
	return wrapped.Payload, nil
}
