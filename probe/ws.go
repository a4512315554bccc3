package probe

import (
	"context"
	"errors"
)

// openWebSocket dials the target's WebSocket.
func (c *conversation) openWebSocket(ctx context.Context, watch *stopwatch) (stream, error) {
	return nil, errors.ErrUnsupported
}
