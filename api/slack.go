package api

import (
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

// slackPaths are where Slack sends clicks on buttons, and /rollcall.
var slackPaths = []string{"/slack/actions", "/slack/command"}

// MaxSlackBody bounds a request of Slack's, in bytes. A click brings the whole message along.
const MaxSlackBody = 64 << 10

func (s *Server) slackAction(c echo.Context) error { return forSlack(c, s.cfg.SlackAction) }

func (s *Server) slackCommand(c echo.Context) error { return forSlack(c, s.cfg.SlackCommand) }

// forSlack has a request answered as it came: the signature covers every byte of it.
func forSlack(c echo.Context, answer func(ctx context.Context, header http.Header, body []byte) (int, string, []byte)) error {
	if answer == nil {
		return echo.ErrNotFound
	}
	r := c.Request()
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxSlackBody+1))
	if err != nil {
		return fault(http.StatusBadRequest, "Body cut short", "The request body ended before it was complete.")
	}
	again(c)
	status, contentType, reply := answer(c.Request().Context(), r.Header, body)
	return blob(c, status, contentType, reply)
}
