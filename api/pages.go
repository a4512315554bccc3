package api

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// The pages of the dashboard. Each handler reads its input, asks the server for what the page shows, and renders.

func (s *Server) pageOverview(c echo.Context) error       { return s.unbuilt(c) }
func (s *Server) pageSetup(c echo.Context) error          { return s.unbuilt(c) }
func (s *Server) doSetup(c echo.Context) error            { return s.unbuilt(c) }
func (s *Server) pageLogin(c echo.Context) error          { return s.unbuilt(c) }
func (s *Server) doLogin(c echo.Context) error            { return s.unbuilt(c) }
func (s *Server) doLogout(c echo.Context) error           { return s.unbuilt(c) }
func (s *Server) pageRegister(c echo.Context) error       { return s.unbuilt(c) }
func (s *Server) doRegister(c echo.Context) error         { return s.unbuilt(c) }
func (s *Server) pageEndpoint(c echo.Context) error       { return s.unbuilt(c) }
func (s *Server) doEndpoint(c echo.Context) error         { return s.unbuilt(c) }
func (s *Server) pageEdit(c echo.Context) error           { return s.unbuilt(c) }
func (s *Server) doEdit(c echo.Context) error             { return s.unbuilt(c) }
func (s *Server) pageCheck(c echo.Context) error          { return s.unbuilt(c) }
func (s *Server) pageIncidents(c echo.Context) error      { return s.unbuilt(c) }
func (s *Server) pageIncident(c echo.Context) error       { return s.unbuilt(c) }
func (s *Server) pageChannels(c echo.Context) error       { return s.unbuilt(c) }
func (s *Server) doChannels(c echo.Context) error         { return s.unbuilt(c) }
func (s *Server) pageChannel(c echo.Context) error        { return s.unbuilt(c) }
func (s *Server) doChannel(c echo.Context) error          { return s.unbuilt(c) }
func (s *Server) pageStatus(c echo.Context) error         { return s.unbuilt(c) }
func (s *Server) pageStatusEndpoint(c echo.Context) error { return s.unbuilt(c) }
func (s *Server) static(c echo.Context) error             { return s.unbuilt(c) }

func (s *Server) unbuilt(c echo.Context) error {
	return s.pageError(c, http.StatusNotImplemented, "Not there yet", "This page is under construction.")
}

// pageError answers with an HTML page that says what went wrong and what to do.
func (s *Server) pageError(c echo.Context, status int, title, detail string) error {
	return c.String(status, title+"\n\n"+detail+"\n")
}
