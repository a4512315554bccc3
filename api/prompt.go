package api

import (
	"context"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"
)

// promptness bounds what a request makes the database do, all together. No page needs a tenth of it while all is well;
// a database that hangs must not hold everybody's requests for as long as it does.
const promptness = 15 * time.Second

var errHangs = fmt.Errorf("no answer of the database within %s: %w", promptness, context.DeadlineExceeded)

// allowance is the deadline of a request, which can be set anew.
type allowance struct {
	whole  context.Context // that of the request as it came
	cancel context.CancelFunc
}

const keyAllowance = "allowance"

// prompt gives every request a deadline. Those that ask somebody else lift it with outlast.
func (s *Server) prompt(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		a := &allowance{whole: c.Request().Context(), cancel: func() {}}
		c.Set(keyAllowance, a)
		defer func() { a.cancel() }()
		again(c)
		return next(c)
	}
}

// again begins the deadline anew, after a while that was not spent on the database.
func again(c echo.Context) {
	a, ok := c.Get(keyAllowance).(*allowance)
	if !ok {
		return
	}
	a.cancel()
	ctx, cancel := context.WithTimeoutCause(a.whole, promptness, errHangs)
	a.cancel = cancel
	c.SetRequest(c.Request().WithContext(ctx))
}

// unhurried lifts the deadline.
func unhurried(c echo.Context) {
	if a, ok := c.Get(keyAllowance).(*allowance); ok {
		c.SetRequest(c.Request().WithContext(a.whole))
	}
}
