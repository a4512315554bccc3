package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// troubles are the statuses that ask for attention, worst first.
var troubles = []store.Status{store.StatusDown, store.StatusDegraded, store.StatusUnknown, store.StatusGated}

// maxTroubled bounds how many endpoints of one such status stand above the rest. Somebody with more of them down than
// this narrows the list by its status.
const maxTroubled = 100

func (s *Server) pageOverview(c echo.Context) error {
	q := queryOf(c)
	filter := store.EndpointFilter{
		Status: choice(q, "status", store.Statuses()),
		Tag:    q.text("tag"),
		Query:  q.text("q"),
		Cursor: q.text("cursor"),
	}
	if err := pageEnd(q); err != nil {
		return err
	}
	ctx := c.Request().Context()
	page := web.OverviewPage{
		Frame:  s.frame(c, "/"),
		Filter: web.OverviewFilter{Query: filter.Query, Status: string(filter.Status), Tag: filter.Tag},
	}
	// What is wrong stands on the first page, above the rest; later pages and lists of one status are plain lists.
	front := filter.Cursor == "" && filter.Status == ""
	var troubled []store.Overview
	if front {
		var err error
		if troubled, err = s.troubled(ctx, filter); err != nil {
			return err
		}
	} else if filter.Cursor != "" {
		page.First = overviewPath(filter, "")
	}
	rest, err := s.cfg.Store.Endpoints(ctx, filter)
	if err != nil {
		return err
	}
	counts, err := s.countsOf(ctx, store.Hourly, store.HourOf(time.Now().Add(-24*time.Hour)), troubled, rest.Items)
	if err != nil {
		return err
	}
	listed := make([]store.Endpoint, 0, len(troubled)+len(rest.Items))
	for _, o := range slices.Concat(troubled, rest.Items) {
		listed = append(listed, o.Endpoint)
	}
	covered, err := s.maintained(ctx, listed...)
	if err != nil {
		return err
	}
	page.Attention, page.Rest = endpointRows(troubled, counts, covered), endpointRows(rest.Items, counts, covered)
	if front {
		page.Rest = slices.DeleteFunc(page.Rest, web.EndpointRow.Troubled)
	}
	if rest.Next != "" {
		page.Next = overviewPath(filter, rest.Next)
	}
	page.None = front && !page.Filter.Active() && len(rest.Items) == 0
	return s.render(c, http.StatusOK, page)
}

// troubled lists the endpoints that ask for attention, the worst and latest first.
func (s *Server) troubled(ctx context.Context, filter store.EndpointFilter) ([]store.Overview, error) {
	var all []store.Overview
	for _, status := range troubles {
		filter.Status, filter.Limit = status, maxTroubled
		found, err := s.cfg.Store.Endpoints(ctx, filter)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(found.Items, func(a, b store.Overview) int { return b.State.Since.Compare(a.State.Since) })
		all = append(all, found.Items...)
	}
	return all, nil
}

func endpointRows(items []store.Overview, counts map[string]store.Counts, covered map[string]*web.MaintenanceRow) []web.EndpointRow {
	rows := make([]web.EndpointRow, 0, len(items))
	for _, o := range items {
		rows = append(rows, web.EndpointRow{
			Slug:    o.Slug,
			Name:    o.Name,
			Host:    placeOf(o.Endpoint),
			Kind:    o.Target(o.State).Kind,
			Status:  o.Status(),
			Since:   o.State.Since,
			Failure: o.State.Failure,
			Checked: o.State.LastCheckAt,
			Latency: o.State.LastDuration,
			Uptime:  percentOf(counts[o.ID]),
			Tags:    o.Tags,

			Maintained: covered[o.ID] != nil,
		})
	}
	return rows
}

// placeOf is where an endpoint is, in a word: the host of its URL, or the program of its command.
func placeOf(e store.Endpoint) string {
	if e.Command != nil {
		return e.DefaultName()
	}
	return hostOf(e.URL)
}

// hostOf returns the part of an endpoint's URL that tells endpoints apart and holds no key.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}

// percentOf returns the uptime that counts stand for, nil when nothing was measured.
func percentOf(counts store.Counts) *float64 {
	percent, measured := counts.Uptime()
	if !measured {
		return nil
	}
	return &percent
}

// overviewPath is the address of a page of the overview.
func overviewPath(f store.EndpointFilter, cursor string) string {
	return listPath("/", map[string]string{"q": f.Query, "status": string(f.Status), "tag": f.Tag, "cursor": cursor})
}

// listPath is the address of a page of a list, without the parameters that are empty.
func listPath(path string, parameters map[string]string) string {
	values := url.Values{}
	for name, value := range parameters {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
