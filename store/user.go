package store

import "time"

// Role says what a user or token may do.
type Role string

// RoleAdmin may do everything.
const RoleAdmin Role = "admin"

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
