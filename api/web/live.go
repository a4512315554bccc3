package web

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxLive is how many endpoints one page listens to.
const maxLive = 100

// livePath is where a page that was made at some time hears of changes of endpoints.
func livePath(path string, now time.Time, slugs []string) string {
	query := url.Values{"at": {strconv.FormatInt(now.UnixMilli(), 10)}}
	for _, slug := range slugs[:min(len(slugs), maxLive)] {
		query.Add("e", slug)
	}
	return path + "?" + query.Encode()
}

// liveEvents is where streams of events are for whoever is logged in.
const liveEvents = "/events"

// publicEvents is where they are for the status page that a page belongs to.
func (f Frame) publicEvents() string { return strings.TrimSuffix(f.Home(), "/") + "/feed.events" }

// Live is where the page hears of changes.
func (p OverviewPage) Live() string {
	var slugs []string
	for _, rows := range [][]EndpointRow{p.Attention, p.Rest} {
		for _, row := range rows {
			slugs = append(slugs, row.Slug)
		}
	}
	return livePath(liveEvents, p.Now, slugs)
}

// Live is where the page hears of changes.
func (p EndpointPage) Live() string { return livePath(liveEvents, p.Now, []string{p.Slug}) }

// Live is where the page hears of changes.
func (p IncidentsPage) Live() string { return livePath(liveEvents, p.Now, nil) }

// Live is where the page hears of changes.
func (p IncidentPage) Live() string { return livePath(liveEvents, p.Now, nil) }

// Live is where the page hears of changes.
func (p StatusPage) Live() string {
	slugs := make([]string, 0, len(p.Endpoints))
	for _, row := range p.Endpoints {
		slugs = append(slugs, row.Slug)
	}
	return livePath(p.publicEvents(), p.Now, slugs)
}

// Live is where the page hears of changes.
func (p StatusEndpointPage) Live() string {
	return livePath(p.publicEvents(), p.Now, []string{p.Endpoint.Slug})
}
