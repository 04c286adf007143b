package kerberos

import (
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/types"
)

// guarded runs what reads bytes of others by the library, which in places looks before it asks whether something is there: what it stumbles over is an error of those bytes.
func guarded(read func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("malformed: %v", fault)
		}
	}()
	return read()
}

// modernTypes are the types of keys that are served: AES by RFC 3962 and RFC 8009. What is older (DES, RC4) has been withdrawn (RFC 6649, RFC 8429).
var modernTypes = []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128}

func modern(keyType int32) bool { return slices.Contains(modernTypes, keyType) }

// checkKey tells whether a key from a message can be used.
func checkKey(key types.EncryptionKey) error {
	if !modern(key.KeyType) {
		return fmt.Errorf("encryption type %d is not served: AES is", key.KeyType)
	}
	if size := keySize(key.KeyType); len(key.KeyValue) != size {
		return fmt.Errorf("a key of encryption type %d has %d bytes, not %d", key.KeyType, size, len(key.KeyValue))
	}
	return nil
}

// keySize is how many bytes a key has.
func keySize(keyType int32) int {
	switch keyType {
	case etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA384_192:
		return 32
	}
	return 16
}

// decrypt opens what somebody encrypted by a key that checkKey has passed.
func decrypt(sealed types.EncryptedData, key types.EncryptionKey, usage uint32) ([]byte, error) {
	cipher, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	if len(sealed.Cipher) < cipher.GetConfounderByteSize()+cipher.GetHMACBitLength()/8 {
		return nil, fmt.Errorf("%d encrypted bytes are too few", len(sealed.Cipher))
	}
	return crypto.DecryptEncPart(sealed, key, usage)
}
