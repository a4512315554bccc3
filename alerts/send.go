package alerts

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// Test sends a test message and reports, in words for a user and without secrets, why it did not arrive.
func (d *Dispatcher) Test(ctx context.Context, c store.Channel) (err error) {
	defer d.recovered(c, &err)
	_, err = d.send(ctx, d.config.Senders, c, "", NewTestMessage(c, d.config.PublicURL))
	return err
}

// send sends m once, within SendTimeout. Its errors hold none of the channel's secrets.
func (d *Dispatcher) send(
	ctx context.Context, senders map[store.ChannelType]Sender, c store.Channel, ref string, m Message,
) (Receipt, error) {
	sender, ok := senders[c.Type]
	if !ok {
		return Receipt{}, &PermanentError{fmt.Sprintf("nothing here can send to a channel of type %q", c.Type)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.config.SendTimeout,
		fmt.Errorf("no answer within %s: %w", d.config.SendTimeout, context.DeadlineExceeded))
	defer cancel()
	receipt, err := sender.Send(ctx, c, ref, m)
	return receipt, cleaned(err, c)
}

// recovered turns a panic into a passing error. It is to be deferred.
func (d *Dispatcher) recovered(c store.Channel, err *error) {
	p := recover()
	if p == nil {
		return
	}
	d.metrics.panics.Inc()
	d.config.Log.Error("sender panicked", "type", c.Type, "channel", c.ID, "channel_name", c.Name,
		"panic", withoutSecrets(fmt.Sprint(p), c), "stack", string(debug.Stack()))
	*err = errPanic
}

var errPanic = errors.New("our own mistake: the sender panicked, the log says where")

// cleaned returns err as it is when it holds no secret of c, else one of the same type with the secrets cut out.
func cleaned(err error, c store.Channel) error {
	if err == nil || withoutSecrets(err.Error(), c) == err.Error() {
		return err
	}
	if e, ok := errors.AsType[*PermanentError](err); ok {
		return &PermanentError{withoutSecrets(e.Reason, c)}
	}
	if e, ok := errors.AsType[*RetryError](err); ok {
		return &RetryError{After: e.After, Err: errors.New(withoutSecrets(e.Err.Error(), c))}
	}
	return errors.New(withoutSecrets(err.Error(), c))
}

// withoutSecrets cuts the secrets of c out of a text, and the parts of them by which servers repeat them. Senders take care of
// that themselves; here it is for the one that forgets.
func withoutSecrets(text string, c store.Channel) string {
	for _, part := range secretParts(c) {
		text = strings.ReplaceAll(text, part, "…")
	}
	return text
}
