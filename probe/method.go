package probe

import "context"

// method asks the one thing that the target names. Any well-formed result with the right id is a good answer.
func (c *conversation) method(ctx context.Context) *Failure {
	c.result.Kind = KindJSONRPC
	q := question{step: c.target.Method, method: c.target.Method}
	if c.target.Params != nil {
		q.params = c.target.Params
	}
	return c.failure(c.ask(ctx, q))
}
