package token

import (
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
)

// The algorithms of HPKE: X25519, HKDF-SHA256 and AES-256-GCM.
var (
	kem  = hpke.DHKEM(ecdh.X25519())
	kdf  = hpke.HKDFSHA256()
	aead = hpke.AES256GCM()
)

// info returns the HPKE info, which binds the sealed data to its purpose and its agent.
func info(claim string) []byte { return []byte("muster token v1\x00" + claim) }

func seal(publicKey []byte, claim, token string) ([]byte, error) {
	public, err := kem.NewPublicKey(publicKey)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(public, kdf, aead, info(claim), []byte(token))
}

func open(privateKey []byte, claim string, sealed []byte) (string, error) {
	private, err := kem.NewPrivateKey(privateKey)
	if err != nil {
		return "", errors.New("the stored private key is not an X25519 key of 32 bytes")
	}
	token, err := hpke.Open(private, kdf, aead, info(claim), sealed)
	if err != nil {
		return "", errors.New("the token was not sealed for this request, or was changed")
	}
	return string(token), nil
}
