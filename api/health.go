package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// healthz says that this process answers, and nothing about the database: restarting us would not bring that back.
func (s *Server) healthz(c echo.Context) error {
	return ok(c, map[string]string{"status": "ok", "version": s.cfg.Version})
}

// readiness is the answer of /readyz.
type readiness struct {
	Status   string `json:"status"`   // "ready" or "unavailable"
	Database string `json:"database"` // "ok" or "unavailable"
	Waiting  int    `json:"waiting_checks"`
	Detail   string `json:"detail,omitempty"`
}

// pingPatience is less than the second that load balancers wait by default.
const pingPatience = 900 * time.Millisecond

// readyz says whether what we show is whole: the database answers, and no check waits to be written.
func (s *Server) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), pingPatience)
	defer cancel()
	r := readiness{Status: "ready", Database: "ok", Waiting: s.cfg.Backlog()}
	if r.Waiting > 0 {
		r.Status = "unavailable"
		r.Detail = fmt.Sprintf("%d checks wait to be written to the database", r.Waiting)
	}
	if err := s.cfg.Store.Ping(ctx); err != nil {
		s.cfg.Log.WarnContext(ctx, "database does not answer", "error", err)
		r.Status, r.Database = "unavailable", "unavailable"
		if r.Detail == "" {
			r.Detail = "the database does not answer, or its schema is not the one this program knows"
		}
	}
	status := http.StatusOK
	if r.Status != "ready" {
		status = http.StatusServiceUnavailable
	}
	return answer(c, status, "application/json", r)
}
