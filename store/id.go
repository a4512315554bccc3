package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/google/uuid"
)

// NewID returns a fresh id such as "ep_0198…" whose text sorts by the time it was made (UUID version 7, RFC 9562 §5.7).
func NewID(prefix string) string {
	return prefix + "_" + strings.ReplaceAll(uuid.Must(uuid.NewV7()).String(), "-", "")
}

// NewSecret returns a fresh secret of 256 random bits for a link, a cookie or a header, and the hash by which it is
// kept. The secret itself is shown once and never stored.
func NewSecret(prefix string) (secret string, hash []byte) {
	var b [32]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never returns an error
	secret = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, HashSecret(secret)
}

// HashSecret returns the hash by which a secret made by NewSecret is kept. A plain SHA-256 is enough for 256 random
// bits; passwords are hashed with argon2id instead.
func HashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
