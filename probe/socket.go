package probe

import (
	"context"
	"errors"
)

// openSocket dials the target's TCP, TLS or unix socket.
func (c *conversation) openSocket(ctx context.Context, watch *stopwatch) (stream, error) {
	return nil, errors.ErrUnsupported
}
