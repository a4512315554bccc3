package api

import (
	"context"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// attentive is a store that has open streams looked after whenever a login may have ended through it, before it answers: whoever
// has somebody logged out can rely on it.
type attentive struct {
	store.Store
	ended func(ctx context.Context)
}

// UpdateUser implements store.Store.
func (a attentive) UpdateUser(ctx context.Context, id string, change func(*store.User) error) (store.User, error) {
	defer a.ended(ctx)
	return a.Store.UpdateUser(ctx, id, change)
}

// DeleteUser implements store.Store.
func (a attentive) DeleteUser(ctx context.Context, id string) error {
	defer a.ended(ctx)
	return a.Store.DeleteUser(ctx, id)
}

// DeleteSession implements store.Store.
func (a attentive) DeleteSession(ctx context.Context, tokenHash []byte) error {
	defer a.ended(ctx)
	return a.Store.DeleteSession(ctx, tokenHash)
}

// DeleteSessions implements store.Store.
func (a attentive) DeleteSessions(ctx context.Context, userID string, keep []byte) (int, error) {
	defer a.ended(ctx)
	return a.Store.DeleteSessions(ctx, userID, keep)
}

// AcceptInvitation implements store.Store.
func (a attentive) AcceptInvitation(ctx context.Context, hash []byte, now time.Time, u store.User) (store.User, error) {
	defer a.ended(ctx)
	return a.Store.AcceptInvitation(ctx, hash, now, u)
}

// RevokeToken implements store.Store.
func (a attentive) RevokeToken(ctx context.Context, id string, now time.Time) error {
	defer a.ended(ctx)
	return a.Store.RevokeToken(ctx, id, now)
}
