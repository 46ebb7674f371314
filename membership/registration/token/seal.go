package token

import (
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
)

// The parts of HPKE: X25519, HKDF-SHA256 and AES-256-GCM.
var (
	kem  = hpke.DHKEM(ecdh.X25519())
	kdf  = hpke.HKDFSHA256()
	aead = hpke.AES256GCM()
)

// info binds what is sealed to its purpose and to the agent that it is for.
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
		return "", errors.New("the private key that was kept is not an X25519 key of 32 bytes")
	}
	token, err := hpke.Open(private, kdf, aead, info(claim), sealed)
	if err != nil {
		return "", errors.New("it was not sealed for this request, or was tampered with")
	}
	return string(token), nil
}
