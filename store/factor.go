package store

import (
	"encoding/hex"
	"slices"
	"time"
)

// Factor is a second thing that a member has to show beside the password: codes that an app makes of a secret and the time
// (TOTP, RFC 6238), or, where the app is lost, a recovery code.
type Factor struct {
	UserID      string
	Secret      string     // in base32; sealed at rest
	ConfirmedAt *time.Time // nil: it waits for a first code, and nothing is asked for yet
	LastStep    int64      // of the last code that was used: none works twice
	Recovery    []string   // what is left of the recovery codes, as HashRecovery returns them
	CreatedAt   time.Time
}

// ErrHasFactor refuses another second factor beside one that is asked for.
var ErrHasFactor error = Conflict{Field: "code", Message: "is asked for already: remove that second factor first"}

// HashRecovery returns the hash by which a recovery code is kept. The codes are random, of 80 bits, so that a plain SHA-256 will do.
func HashRecovery(code string) string { return hex.EncodeToString(HashSecret(code)) }

// EditFactor lets change edit a copy of f, and holds on to what never changes.
func EditFactor(f Factor, change func(*Factor) error) (Factor, error) {
	edited := f
	edited.Recovery = slices.Clone(f.Recovery)
	if err := change(&edited); err != nil {
		return Factor{}, err
	}
	edited.UserID, edited.CreatedAt = f.UserID, f.CreatedAt
	return edited.tidy(), nil
}

// EnrollFactor returns f as a database is to keep it: waiting for its first code.
func EnrollFactor(f Factor, at time.Time) Factor {
	f.ConfirmedAt, f.LastStep, f.Recovery, f.CreatedAt = nil, 0, nil, Stamp(at)
	return f
}

// tidy returns f as every database gives it back.
func (f Factor) tidy() Factor {
	if f.ConfirmedAt != nil {
		at := Stamp(*f.ConfirmedAt)
		f.ConfirmedAt = &at
	}
	if len(f.Recovery) == 0 {
		f.Recovery = nil
	}
	return f
}

// SealFactor returns the secret of a second factor as a database may keep it.
func (s *Sealer) SealFactor(f Factor) []byte { return s.Seal([]byte(f.Secret), "factor/"+f.UserID) }

// OpenFactor gives back the secret that SealFactor was given. Its error is ErrWrongKey when the key is another one.
func (s *Sealer) OpenFactor(userID string, sealed []byte) (string, error) {
	secret, err := s.Open(sealed, "factor/"+userID)
	return string(secret), err
}
