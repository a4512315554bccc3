package probe

import (
	"net/http"
	"time"
)

// Challenge is what a test sees of a challenge.
type Challenge struct {
	Scheme string
	Params map[string]string
}

// ReadChallenges reads a WWW-Authenticate header.
func ReadChallenges(header string) []Challenge {
	var list []Challenge
	for _, ch := range challenges(http.Header{"Www-Authenticate": {header}}) {
		list = append(list, Challenge{ch.scheme, ch.params})
	}
	return list
}

// TokenEnd returns until when a JWT holds.
func TokenEnd(value string) (time.Time, bool) { return tokenEnd(value) }
