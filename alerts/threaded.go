package alerts

import (
	"context"
	"errors"
)

// threaded is a chat whose messages can be changed: an incident is one message there, with short words behind it that
// people are notified of, which they are not of a change.
type threaded interface {
	post(ctx context.Context, m Message) (ref string, err error)
	// edit makes the message of an incident say m. It returns errGone when there is no such message to edit.
	edit(ctx context.Context, ref string, m Message) error
	say(ctx context.Context, ref string, m Message) error // a short word on the message of an incident
}

// errGone means that a message was deleted, is too old to be edited, or stands where the channel leads no more.
var errGone = errors.New("the message is gone")

// deliver brings m to a threaded chat:
//
//	an incident's opening, and whatever belongs to no incident ── post
//	a reminder, an escalation ── say
//	what somebody did ── edit
//	a change, its end, its beginning anew ── edit, say; or post, when there is nothing to edit
//
// A message that comes again after a crash edits the same once more, and its short word may stand there twice.
func deliver(ctx context.Context, chat threaded, ref string, m Message) (Receipt, error) {
	if ref == "" {
		if m.isWordOfAnAct() {
			return Receipt{Passed: true}, nil // what it happened to was never told here
		}
		return posted(chat.post(ctx, m))
	}
	switch m.Kind {
	case KindReminder, KindEscalation:
		return Receipt{Ref: ref}, chat.say(ctx, ref, m)
	case KindOpened, KindUpdated, KindFlapping, KindCalmed, KindResolved:
		return edited(ctx, chat, ref, m)
	}
	return posted(chat.post(ctx, m))
}

func edited(ctx context.Context, chat threaded, ref string, m Message) (Receipt, error) {
	switch err := chat.edit(ctx, ref, m); {
	case errors.Is(err, errGone) && m.isWordOfAnAct():
		return Receipt{Ref: ref, Passed: true}, nil
	case errors.Is(err, errGone):
		return posted(chat.post(ctx, m))
	case err != nil:
		return Receipt{}, err
	case m.isWordOfAnAct():
		return Receipt{Ref: ref}, nil
	}
	if err := spaced(ctx); err != nil {
		return Receipt{}, err
	}
	return Receipt{Ref: ref}, chat.say(ctx, ref, m)
}

func posted(ref string, err error) (Receipt, error) {
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Ref: ref}, nil
}
