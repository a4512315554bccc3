package store

import (
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Invitation is a link that works once: whoever opens it becomes a member, or sets the password of one. The link holds a secret,
// the store its hash.
type Invitation struct {
	ID   string
	Hash []byte
	// UserID is whose password it sets; empty: it makes a member, with Role.
	UserID    string
	Name      string // what the member is to be called, as a proposal; of one that sets a password, what they are called
	Role      Role
	Author    string // who made it
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Invites reports whether it makes a member.
func (i Invitation) Invites() bool { return i.UserID == "" }

// InvitationLife is how long a link works that makes a member, ResetLife one that sets a password.
const (
	InvitationLife = 7 * 24 * time.Hour
	ResetLife      = 24 * time.Hour
)

// EnrollInvitation returns i with the id and time that a database is to keep it under, or an Invalid.
func EnrollInvitation(i Invitation, at time.Time) (Invitation, error) {
	i.ID, i.CreatedAt, i.ExpiresAt = NewID("inv"), Stamp(at), Stamp(i.ExpiresAt)
	i.Name, i.Author, i.UserID = CleanText(i.Name), CleanText(i.Author), CleanText(i.UserID)
	var problems []probe.Problem
	if i.Name != "" {
		problems = nameProblems("name", i.Name)
	}
	if !i.Role.May(RoleViewer) {
		problems = append(problems, problem("role", "must be viewer, editor or admin"))
	}
	return i, invalid(problems)
}

// Accept returns the member that accepting i makes: u has the name and the password that were chosen.
func (i Invitation) Accept(u User, at time.Time) (User, error) {
	u.Role, u.DisabledAt, u.Issuer, u.Subject = i.Role, nil, "", ""
	return EnrollMember(u, at)
}

// EnrollMember returns u with the id and time that a database is to keep it under, or an Invalid.
func EnrollMember(u User, at time.Time) (User, error) {
	u = EnrollUser(u, at).tidy()
	return u, u.check()
}
