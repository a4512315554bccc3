package probe

import (
	"context"
	"errors"
)

// openProcess starts the target's command.
func (c *conversation) openProcess(ctx context.Context) (stream, error) {
	return nil, errors.ErrUnsupported
}
