package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// pageLocations shows where endpoints are probed from.
func (s *Server) pageLocations(c echo.Context) error {
	ctx := c.Request().Context()
	locations, err := s.cfg.Store.Locations(ctx)
	if err != nil {
		return err
	}
	open, err := s.cfg.Store.Incidents(ctx, store.IncidentFilter{
		Status: store.IncidentOpen, Kinds: []store.IncidentKind{store.IncidentLocation}, Limit: store.MaxLimit,
	})
	if err != nil {
		return err
	}
	offline := map[string]string{}
	for _, i := range open.Items {
		offline[i.Subject] = i.ID
	}
	page := web.LocationsPage{Frame: s.frame(c, "/locations"), Shards: store.Shards}
	for _, l := range locations {
		page.Locations = append(page.Locations, web.LocationRow{
			Location: l, Own: l.Name == s.cfg.Location, Offline: offline[store.SubjectOfLocation(l.Name)],
		})
	}
	return s.render(c, http.StatusOK, page)
}

// pageEndpoints leads to the list of endpoints.
func (s *Server) pageEndpoints(c echo.Context) error { return seeOther(c, "/", "") }
