package api

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var openAPI []byte

// getWebhookSchema shows what webhooks are sent, to whoever receives it.
func (s *Server) getWebhookSchema(c echo.Context) error {
	if s.cfg.WebhookSchema == nil {
		return echo.ErrNotFound
	}
	shared(c, "public, max-age=300")
	return cached(c, "application/schema+json", s.cfg.WebhookSchema)
}

// getOpenAPI shows the description of all of this that programs read.
func (s *Server) getOpenAPI(c echo.Context) error {
	shared(c, "public, max-age=300")
	return c.Blob(http.StatusOK, "application/yaml", openAPI)
}
