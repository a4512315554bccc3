package store

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// Sealer encrypts secrets before they reach a database (XChaCha20-Poly1305, draft-irtf-cfrg-xchacha). The zero Sealer
// seals nothing: use NewSealer.
type Sealer struct{ aead cipher.AEAD }

// KeySize is the length of a secret key in bytes.
const KeySize = chacha20poly1305.KeySize

// ErrWrongKey means that a secret was sealed with another key, or changed since.
var ErrWrongKey = errors.New("secret cannot be opened: it was sealed with another key, or was changed")

// NewSealer takes a key of KeySize bytes.
func NewSealer(key []byte) (*Sealer, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("secret key must have %d bytes, not %d", KeySize, len(key))
	}
	return &Sealer{aead}, nil
}

// ParseKey reads a key written as base64 (any of its alphabets, padded or not) of KeySize bytes.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	text = strings.NewReplacer("+", "-", "/", "_").Replace(text)
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("secret key must be base64 of %d bytes: make one with `openssl rand -base64 %d`", KeySize, KeySize)
	}
	return key, nil
}

// Seal encrypts plain for one place: only Open with the same place (such as "endpoint/ep_…") gives it back.
func (s *Sealer) Seal(plain []byte, place string) []byte {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	rand.Read(nonce) //nolint:errcheck // crypto/rand.Read never returns an error
	return s.aead.Seal(nonce, nonce, plain, []byte(place))
}

// Open gives back what Seal was given, or ErrWrongKey.
func (s *Sealer) Open(sealed []byte, place string) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrWrongKey
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(place))
	if err != nil {
		return nil, ErrWrongKey
	}
	return plain, nil
}
