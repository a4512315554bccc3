package api

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// What a password costs to check: the first of OWASP's equivalent settings for argon2id, about 50 ms and 46 MiB.
const (
	argonMemory  = 46 << 10 // KiB
	argonTime    = 1
	argonThreads = 1
	argonKey     = 32
	argonSalt    = 16
)

// HashPassword returns the PHC string of argon2id by which a password is kept.
func HashPassword(password string) string {
	salt := make([]byte, argonSalt)
	rand.Read(salt) //nolint:errcheck // crypto/rand.Read never returns an error
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonThreads, argonKey)
	return phc(salt, key)
}

func phc(salt, key []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key))
}

// nobodysHash fits no password. It is checked when a name is not known, so that the answer takes as long as for a
// known one.
var nobodysHash = phc(make([]byte, argonSalt), make([]byte, argonKey))

// VerifyPassword reports whether password is the one that hash was made of. A hash that cannot be read, or that asks
// for more work than anybody here would have asked for, fits no password.
func VerifyPassword(hash, password string) bool {
	p, ok := parseHash(hash)
	if !ok {
		return false
	}
	key := argon2.IDKey([]byte(password), p.salt, p.time, p.memory, p.threads, uint32(len(p.key)))
	return subtle.ConstantTimeCompare(key, p.key) == 1
}

type passwordHash struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

// Bounds of a hash that is read back, so that a changed row cannot take all memory: 256 MiB, ten passes.
const (
	maxArgonMemory  = 256 << 10
	maxArgonTime    = 10
	maxArgonThreads = 16
)

func parseHash(hash string) (passwordHash, bool) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return passwordHash{}, false
	}
	var p passwordHash
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); err != nil {
		return passwordHash{}, false
	}
	var saltErr, keyErr error
	p.salt, saltErr = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, keyErr = base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case saltErr != nil, keyErr != nil,
		len(p.salt) < 8, len(p.salt) > 64, len(p.key) < 16, len(p.key) > 64,
		p.threads < 1, p.threads > maxArgonThreads,
		p.time < 1, p.time > maxArgonTime,
		p.memory < 8*uint32(p.threads), p.memory > maxArgonMemory:
		return passwordHash{}, false
	}
	return p, true
}
