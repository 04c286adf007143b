package ssl

import (
	"bytes"
	"crypto/cipher"
	"crypto/des"
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"math/big"

	"github.com/youmark/pkcs8"
)

// sha1TripleDES is the one cipher of encrypted keys in PEM that Kafka reads on Java 17 (openssl pkcs8 -v1 PBE-SHA1-3DES): Java has no
// name for the newer ones there.
var sha1TripleDES = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 3}

type encryptedKey struct {
	Algorithm struct {
		ID         asn1.ObjectIdentifier
		Parameters asn1.RawValue
	}
	Data []byte
}

// maxIterations bounds what a file may ask for.
const maxIterations = 10_000_000

// decryptKey reads an encrypted PKCS#8 key.
func decryptKey(der []byte, password string) (any, error) {
	var sealed encryptedKey
	if _, err := asn1.Unmarshal(der, &sealed); err != nil {
		return nil, ErrMalformed
	}
	if !sealed.Algorithm.ID.Equal(sha1TripleDES) {
		private, err := pkcs8.ParsePKCS8PrivateKey(der, []byte(password))
		if err != nil {
			return nil, ErrPassword
		}
		return private, nil
	}
	var with struct {
		Salt       []byte
		Iterations int
	}
	if _, err := asn1.Unmarshal(sealed.Algorithm.Parameters.FullBytes, &with); err != nil || with.Iterations < 1 || with.Iterations > maxIterations ||
		len(with.Salt) == 0 || len(sealed.Data) == 0 || len(sealed.Data)%des.BlockSize != 0 {
		return nil, ErrMalformed
	}
	block, err := des.NewTripleDESCipher(derive(1, password, with.Salt, with.Iterations, 24))
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(sealed.Data))
	cipher.NewCBCDecrypter(block, derive(2, password, with.Salt, with.Iterations, des.BlockSize)).CryptBlocks(plain, sealed.Data)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > des.BlockSize {
		return nil, ErrPassword
	}
	private, err := x509.ParsePKCS8PrivateKey(plain[:len(plain)-padding])
	if err != nil {
		return nil, ErrPassword
	}
	return private, nil
}

// derive makes key material of a password as PKCS#12 does (RFC 7292, appendix B.2); purpose 1 is a key, 2 an initial vector.
func derive(purpose byte, password string, salt []byte, iterations, size int) []byte {
	const block = sha1.BlockSize
	d := bytes.Repeat([]byte{purpose}, block)
	i := append(fillBlocks(salt, block), fillBlocks(append(wide(password), 0, 0), block)...)
	one := big.NewInt(1)
	modulus := new(big.Int).Lsh(one, 8*block)
	var out []byte
	for {
		sum := sha1.Sum(append(bytes.Clone(d), i...))
		for range iterations - 1 {
			sum = sha1.Sum(sum[:])
		}
		out = append(out, sum[:]...)
		if len(out) >= size {
			return out[:size]
		}
		b := new(big.Int).SetBytes(fillBlocks(sum[:], block))
		b.Add(b, one)
		for at := 0; at < len(i); at += block {
			n := new(big.Int).SetBytes(i[at : at+block])
			n.Add(n, b).Mod(n, modulus)
			n.FillBytes(i[at : at+block])
		}
	}
}

// fillBlocks repeats what until it is a whole number of blocks.
func fillBlocks(what []byte, block int) []byte {
	size := (len(what) + block - 1) / block * block
	out := make([]byte, 0, size)
	for len(out) < size {
		out = append(out, what[:min(len(what), size-len(out))]...)
	}
	return out
}
