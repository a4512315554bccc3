package store

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Role says what a user or token may do. Each may do what those before it may.
type Role string

// The roles.
const (
	RoleViewer Role = "viewer" // looks at everything but secrets, members, tokens and the audit log
	RoleEditor Role = "editor" // changes endpoints, channels, maintenance, status pages, and acts on incidents
	RoleAdmin  Role = "admin"  // does everything
)

// Roles are all roles, from the one that may do least.
var Roles = []Role{RoleViewer, RoleEditor, RoleAdmin}

// May reports whether somebody with role r may do what takes the role needed. A word that is no role may do nothing, and
// nobody may do what takes one.
func (r Role) May(needed Role) bool {
	has, takes := slices.Index(Roles, r), slices.Index(Roles, needed)
	return takes >= 0 && has >= takes
}

// User is somebody who may log in: by a password, as somebody whom a provider of identities knows, or both.
type User struct {
	ID           string
	Name         string // unique without regard to case
	PasswordHash string // PHC string of argon2id; empty: no password is good
	Role         Role
	DisabledAt   *time.Time // nil: may log in
	// Issuer and Subject are who they are to a provider of identities (OpenID Connect Core 1.0 §2): unique together, both empty
	// for nobody there. An e-mail address is no identity: it can be given to somebody else.
	Issuer, Subject string
	CreatedAt       time.Time

	// HasFactor says that a second factor is asked for; see Factor. It is read, never written.
	HasFactor bool
}

// administers reports whether u can do what only admins may.
func (u User) administers() bool { return u.Role == RoleAdmin && u.DisabledAt == nil }

// EditUser lets change edit a copy of u, and holds on to what never changes.
func EditUser(u User, change func(*User) error) (User, error) {
	edited := u
	if err := change(&edited); err != nil {
		return User{}, err
	}
	edited.ID, edited.CreatedAt, edited.HasFactor = u.ID, u.CreatedAt, u.HasFactor
	return edited.tidy(), edited.check()
}

// tidy returns u as every database gives it back.
func (u User) tidy() User {
	u.Name, u.Issuer, u.Subject = CleanText(u.Name), CleanText(u.Issuer), CleanText(u.Subject)
	if u.DisabledAt != nil {
		at := Stamp(*u.DisabledAt)
		u.DisabledAt = &at
	}
	return u
}

func (u User) check() error {
	problems := nameProblems("name", u.Name)
	if !u.Role.May(RoleViewer) {
		problems = append(problems, problem("role", "must be viewer, editor or admin"))
	}
	if (u.Issuer == "") != (u.Subject == "") {
		problems = append(problems, problem("subject", "goes with an issuer"))
	}
	return invalid(problems)
}

// LosesAdmin reports whether after, nil for nobody, administers no longer what before did: then somebody else must.
func LosesAdmin(before User, after *User) bool {
	return before.administers() && (after == nil || !after.administers())
}

// ErrLastAdmin refuses to take away the last admin who can log in: nobody could make another one.
var ErrLastAdmin error = Conflict{Field: "role", Message: "is that of the last admin: make somebody else an admin first"}

// EndsSessions reports whether a change of a user ends their logins: somebody disabled, or with another password.
func EndsSessions(before, after User) bool {
	return before.PasswordHash != after.PasswordHash || before.DisabledAt == nil && after.DisabledAt != nil
}

// EndsSubscriptions reports whether a change of a user ends what they are sent: somebody disabled hears no more.
func EndsSubscriptions(before, after User) bool {
	return before.DisabledAt == nil && after.DisabledAt != nil
}

// Session is a login that can be revoked on the server: the cookie holds a secret, the store its hash.
type Session struct {
	TokenHash  []byte
	UserID     string
	Address    string // from where it began
	UserAgent  string // of the browser, as it names itself
	CreatedAt  time.Time
	LastSeenAt time.Time // to the minute
	ExpiresAt  time.Time
}

// ID returns what a session goes by where its owner sees it. It is a part of the hash, of which no cookie can be made.
func (s Session) ID() string { return hex.EncodeToString(s.TokenHash[:min(len(s.TokenHash), 8)]) }

// Bounds of what a browser says of itself.
const (
	maxUserAgent = 200 // bytes
	maxAddress   = 60
)

// EnrollSession returns s as a database is to keep it.
func EnrollSession(s Session) Session {
	s.Address, s.UserAgent = clipText(CleanText(s.Address), maxAddress), clipText(CleanText(s.UserAgent), maxUserAgent)
	s.CreatedAt, s.ExpiresAt = Stamp(s.CreatedAt), Stamp(s.ExpiresAt)
	if s.LastSeenAt.IsZero() {
		s.LastSeenAt = s.CreatedAt
	}
	s.LastSeenAt = Stamp(s.LastSeenAt)
	return s
}

// Login is what somebody proves with each request who they are: a session or a token, with what it lets them do.
type Login struct {
	Hash []byte
	Role Role
}

// SeenEvery is how often at most it is written when a session was last seen.
const SeenEvery = time.Minute

// Token is a key to the REST API. Only its hash is kept.
type Token struct {
	ID         string
	Name       string
	Hash       []byte
	Role       Role
	Scopes     []Scope // nil: all that the role may
	CreatedAt  time.Time
	ExpiresAt  *time.Time // nil: never
	LastUsedAt *time.Time
	RevokedAt  *time.Time
}

// Scope is a part of the API that a token may be bound to, by its noun.
type Scope string

// The scopes.
const (
	ScopeEndpoints     Scope = "endpoints"
	ScopeChecks        Scope = "checks"
	ScopeIncidents     Scope = "incidents"
	ScopeChannels      Scope = "channels"
	ScopeMaintenance   Scope = "maintenance"
	ScopeSubscriptions Scope = "subscriptions"
	ScopePages         Scope = "pages"
	ScopeMembers       Scope = "members" // invitations, tokens and the audit log as well
)

// Scopes are all scopes.
var Scopes = []Scope{
	ScopeEndpoints, ScopeChecks, ScopeIncidents, ScopeChannels, ScopeMaintenance, ScopeSubscriptions, ScopePages, ScopeMembers,
}

// Reaches reports whether the token may be used for a part of the API.
func (t Token) Reaches(part Scope) bool { return len(t.Scopes) == 0 || slices.Contains(t.Scopes, part) }

// Validate returns everything that is wrong with t as an Invalid. It may not have expired by now.
func (t Token) Validate(now time.Time) error {
	problems := nameProblems("name", t.Name)
	if !t.Role.May(RoleViewer) {
		problems = append(problems, problem("role", "must be viewer, editor or admin"))
	}
	problems = append(problems, t.scopeProblems()...)
	if t.ExpiresAt != nil && (!t.ExpiresAt.After(now) || t.ExpiresAt.Sub(now) > maxTokenLife) {
		problems = append(problems, problem("expires_at", "must lie ahead, by at most ten years"))
	}
	return invalid(problems)
}

func (t Token) scopeProblems() (problems []probe.Problem) {
	for i, s := range t.Scopes {
		switch {
		case !slices.Contains(Scopes, s):
			problems = append(problems, problem(fmt.Sprintf("scopes[%d]", i), "is no scope: use some of %s", scopeNames()))
		case slices.Contains(t.Scopes[:i], s):
			problems = append(problems, problem(fmt.Sprintf("scopes[%d]", i), "is there twice"))
		}
	}
	return problems
}

func scopeNames() string {
	names := make([]string, 0, len(Scopes))
	for _, s := range Scopes {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

const maxTokenLife = 10 * 366 * 24 * time.Hour
