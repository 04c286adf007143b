// Package secret is how Kafka keeps passwords encrypted in ZooKeeper: dynamic settings of brokers that hold one
// (KIP-226) stand there as a list of name:value pairs, which says with what the password was encrypted. Only the secret
// that the key is derived from is not in it: every broker has its own, in its file (password.encoder.secret).
package secret

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Encoder encrypts with one secret, and decrypts what was encrypted with it whatever else was chosen then.
type Encoder struct {
	Secret string
	// KeyFactory derives the key, as Java calls it [password.encoder.keyfactory.algorithm]; empty: PBKDF2WithHmacSHA512.
	KeyFactory string
	Cipher     string // [password.encoder.cipher.algorithm]
	KeyBits    int    // [password.encoder.key.length]
	Iterations int    // of the derivation [password.encoder.iterations]
}

// usualKeyFactory is taken when none is named, as Kafka does.
const usualKeyFactory = "PBKDF2WithHmacSHA512"

// The ciphers of Java that are known here.
const (
	cbc = "AES/CBC/PKCS5Padding"
	gcm = "AES/GCM/NoPadding"
)

var keyFactories = map[string]func() hash.Hash{
	"PBKDF2WithHmacSHA1": sha1.New, "PBKDF2WithHmacSHA224": sha256.New224, "PBKDF2WithHmacSHA256": sha256.New,
	"PBKDF2WithHmacSHA384": sha512.New384, usualKeyFactory: sha512.New,
}

const (
	saltBytes = 256 // as Kafka
	tagBits   = 128
	// most is how often the derivation is repeated at most for what stands in ZooKeeper: seconds of a processor.
	most = 10_000_000
)

// errUnreadable says no more: what is wrong with a password is nobody's business.
var errUnreadable = errors.New("the password cannot be decrypted with this secret")

// Check tells whether the encoder can do what it is to do.
func (e Encoder) Check() error {
	_, _, err := e.parts()
	return err
}

func (e Encoder) parts() (keyFactory string, derive func() hash.Hash, err error) {
	if keyFactory = e.KeyFactory; keyFactory == "" {
		keyFactory = usualKeyFactory
	}
	derive, known := keyFactories[keyFactory]
	switch {
	case !known:
		return "", nil, fmt.Errorf("the key factory %q is not known here", keyFactory)
	case e.Cipher != cbc && e.Cipher != gcm:
		return "", nil, fmt.Errorf("the cipher %q is not known here: %s and %s are", e.Cipher, cbc, gcm)
	case !slices.Contains([]int{128, 192, 256}, e.KeyBits):
		return "", nil, fmt.Errorf("a key of AES has 128, 192 or 256 bits, not %d", e.KeyBits)
	case e.Iterations < 1 || e.Iterations > most:
		return "", nil, fmt.Errorf("the derivation of a key cannot be repeated %d times", e.Iterations)
	}
	return keyFactory, derive, nil
}

// block is the cipher with the key that a salt gives.
func (e Encoder) block(salt []byte) (cipher.Block, error) {
	_, derive, err := e.parts()
	if err != nil {
		return nil, err
	}
	key, err := pbkdf2.Key(derive, e.Secret, salt, e.Iterations, e.KeyBits/8)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// The names of the pairs.
const (
	keyVector     = "initializationVector"
	keyBits       = "keyLength"
	keySalt       = "salt"
	keyFactory    = "keyFactoryAlgorithm"
	keyCipher     = "cipherAlgorithm"
	keyTag        = "authenticationTagLength"
	keyIterations = "iterations"
	keyLength     = "passwordLength"
	keyEncrypted  = "encryptedPassword"
)

// Encode encrypts a password, each time in another way.
func (e Encoder) Encode(password string) (string, error) {
	factory, _, err := e.parts()
	if err != nil {
		return "", err
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	block, err := e.block(salt)
	if err != nil {
		return "", err
	}
	var vector, encrypted []byte
	tag := ""
	if e.Cipher == gcm {
		sealed, err := cipher.NewGCM(block)
		if err != nil {
			return "", err
		}
		vector = make([]byte, sealed.NonceSize())
		_, _ = rand.Read(vector)
		encrypted = sealed.Seal(nil, vector, []byte(password), nil)
		tag = fmt.Sprintf("%s:%d,", keyTag, tagBits)
	} else {
		vector = make([]byte, block.BlockSize())
		_, _ = rand.Read(vector)
		encrypted = padded([]byte(password), block.BlockSize())
		cipher.NewCBCEncrypter(block, vector).CryptBlocks(encrypted, encrypted)
	}
	text := base64.StdEncoding.EncodeToString
	// The order is that of Kafka's hash table.
	return fmt.Sprintf("%s:%s,%s:%d,%s:%s,%s:%s,%s:%s,%s%s:%d,%s:%d,%s:%s", keyVector, text(vector), keyBits, e.KeyBits, keySalt, text(salt), keyFactory, factory,
		keyCipher, e.Cipher, tag, keyIterations, e.Iterations, keyLength, javaLength(password), keyEncrypted, text(encrypted)), nil
}

// Decode decrypts a password. Its errors do not tell of it.
func (e Encoder) Decode(encoded string) (string, error) {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(encoded, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), ":")
		pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	var broken error
	number := func(name string) int {
		n, err := strconv.Atoi(pairs[name])
		if err != nil {
			broken = fmt.Errorf("an encrypted password has no number as its %s", name)
		}
		return n
	}
	bytes := func(name string) []byte {
		b, err := base64.StdEncoding.DecodeString(pairs[name])
		if err != nil || len(b) == 0 {
			broken = fmt.Errorf("an encrypted password has no bytes as its %s", name)
		}
		return b
	}
	then := Encoder{Secret: e.Secret, KeyFactory: pairs[keyFactory], Cipher: pairs[keyCipher], KeyBits: number(keyBits), Iterations: number(keyIterations)}
	salt, vector, encrypted, length := bytes(keySalt), bytes(keyVector), bytes(keyEncrypted), number(keyLength)
	if then.Cipher == gcm && number(keyTag) != tagBits {
		broken = errors.New("an encrypted password has an authentication tag of another length than 128 bits")
	}
	if broken != nil {
		return "", broken
	}
	block, err := then.block(salt)
	if err != nil {
		return "", err
	}
	var plain []byte
	if then.Cipher == gcm {
		sealed, err := cipher.NewGCMWithNonceSize(block, len(vector))
		if err != nil {
			return "", err
		}
		if plain, err = sealed.Open(nil, vector, encrypted, nil); err != nil {
			return "", errUnreadable
		}
	} else {
		if len(vector) != block.BlockSize() || len(encrypted)%block.BlockSize() != 0 {
			return "", errUnreadable
		}
		cipher.NewCBCDecrypter(block, vector).CryptBlocks(encrypted, encrypted)
		var sound bool
		if plain, sound = unpadded(encrypted, block.BlockSize()); !sound {
			return "", errUnreadable
		}
	}
	if javaLength(string(plain)) != length { // Kafka's check for a wrong secret that happens to give a sound padding
		return "", errUnreadable
	}
	return string(plain), nil
}

// javaLength is the length of a string as Java counts it.
func javaLength(s string) int { return len(utf16.Encode([]rune(s))) }

// padded and unpadded are the padding of PKCS #5: as many bytes as are missing, each of them that number.
func padded(plain []byte, block int) []byte {
	n := block - len(plain)%block
	return append(plain, bytes.Repeat([]byte{byte(n)}, n)...)
}

func unpadded(plain []byte, block int) (rest []byte, sound bool) {
	if len(plain) == 0 {
		return nil, false
	}
	n := int(plain[len(plain)-1])
	if n == 0 || n > block || n > len(plain) {
		return nil, false
	}
	rest, padding := plain[:len(plain)-n], plain[len(plain)-n:]
	for _, b := range padding {
		if int(b) != n {
			return nil, false
		}
	}
	return rest, true
}
