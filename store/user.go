package store

import (
	"slices"
	"time"
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

// User is somebody who may log in.
type User struct {
	ID           string
	Name         string
	PasswordHash string // PHC string of argon2id
	Role         Role
	CreatedAt    time.Time
}

// Session is a login that can be revoked on the server: the cookie holds a secret, the store its hash.
type Session struct {
	TokenHash []byte
	UserID    string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Token is a key to the REST API. Only its hash is kept.
type Token struct {
	ID         string
	Name       string
	Hash       []byte
	Role       Role
	CreatedAt  time.Time
	LastUsedAt *time.Time
	RevokedAt  *time.Time
}
