package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
)

// Setting is one of those with which the service was started. They are changed where it is started, and shown to admins.
type Setting struct {
	Flag     string // such as "--listen"
	Variable string // of the environment
	Usage    string // what it is for; a word in backquotes stands for the value
	Value    string // empty where it is a secret
	Secret   bool
	Origin   Origin
}

// Origin is where the value of a setting came from.
type Origin string

// Origins.
const (
	OriginDefault     Origin = "default"
	OriginEnvironment Origin = "environment"
	OriginFlag        Origin = "flag"
)

func (s *Server) pageSettings(c echo.Context) error {
	page := web.SettingsPage{Frame: s.frame(c, "/settings"), Location: s.cfg.Location, PublicURL: s.cfg.PublicURL, Since: s.started}
	for _, x := range s.cfg.Settings {
		page.Rows = append(page.Rows, web.SettingRow{
			Flag: x.Flag, Variable: x.Variable, Usage: x.Usage, Value: x.Value, Hidden: x.Secret, Given: x.Origin != OriginDefault, Origin: string(x.Origin),
		})
	}
	return s.render(c, http.StatusOK, page)
}
