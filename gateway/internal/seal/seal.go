// Package seal makes texts that clients keep for the gateway, and cannot read or change: the state of a call that asks for
// input, and ids of tasks. Nothing of them is kept here. So they outlive a process, and work with each process that has the key.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// Key seals, with AES-256-GCM. Its methods may be called from any goroutine.
type Key struct {
	aead, chosen cipher.AEAD // of the same key: with a random nonce, and with one that is given
	nonces       []byte      // the secret of nonces that follow from what is sealed
}

// New returns the key for a secret. Without a secret it is a random one, which only this process has.
func New(secret []byte) (*Key, error) {
	if len(secret) == 0 {
		secret = []byte(rand.Text())
	}
	sum := sha256.Sum256(secret)
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	chosen, err := cipher.NewGCM(block)
	nonces := hmac.New(sha256.New, secret)
	nonces.Write([]byte("nonces"))
	return &Key{aead, chosen, nonces.Sum(nil)}, err
}

// Seal returns a text for a value. It can be opened with the same purpose only, which no two kinds of texts share and which may
// say to what the text belongs.
func (k *Key) Seal(purpose string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(k.aead.Seal(nil, nil, data, []byte(purpose))), nil
}

// SealName is Seal for the name of a thing: the text is the same each time. So it says which values are equal.
func (k *Key) SealName(purpose string, value any) (string, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	from := hmac.New(sha256.New, k.nonces)
	fmt.Fprintf(from, "%q", purpose)
	from.Write(data)
	nonce := from.Sum(nil)[:k.chosen.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(k.chosen.Seal(nonce, nonce, data, []byte(purpose))), nil
}

// Open reads a text into a value, and reports whether the key has sealed it for this purpose, with Seal or SealName.
func (k *Key) Open(purpose, text string, to any) bool {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return false
	}
	data, err := k.aead.Open(nil, nil, sealed, []byte(purpose))
	return err == nil && json.Unmarshal(data, to) == nil
}
