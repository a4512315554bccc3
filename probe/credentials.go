package probe

import (
	"strings"
)

func (c *conversation) unauthorized(q question, a *answer, words string) *problem {
	if a.header.Get("WWW-Authenticate") == "" && !q.bare {
		c.warn(q.step, ClassAuthNotAdvertised, a.status, "401 without a WWW-Authenticate header")
	}
	if c.target.hasCredentials() {
		return &problem{ClassCredentialRejected, a.status, words}
	}
	return &problem{ClassAuthRequired, a.status, words}
}

func (c *conversation) forbidden(a *answer, words string) *problem {
	scope := strings.Contains(a.header.Get("WWW-Authenticate"), "insufficient_scope")
	if scope || c.target.hasCredentials() {
		return &problem{ClassAuthForbidden, a.status, words}
	}
	return &problem{ClassAuthRequired, a.status, words}
}
