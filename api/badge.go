package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// badge is what a badge says, before it is drawn.
type badge struct {
	label   string
	message string
	color   string
}

// The colours of badges. White text stands on each with a contrast of at least 4.5 : 1 (WCAG 2.2 §1.4.3).
const (
	badgeGreen  = "#1a7f37"
	badgeOlive  = "#6b6f00"
	badgeAmber  = "#9a6700"
	badgeRed    = "#c62828"
	badgeBlue   = "#1f6feb"
	badgeGrey   = "#5f6368"
	badgeLabel  = "#444c56"
	badgeText   = "#ffffff"
	badgeNobody = "unknown"
)

var statusColors = map[store.Status]string{
	store.StatusUp:       badgeGreen,
	store.StatusDegraded: badgeAmber,
	store.StatusDown:     badgeRed,
	store.StatusGated:    badgeBlue,
	store.StatusUnknown:  badgeGrey,
	store.StatusPending:  badgeGrey,
	store.StatusPaused:   badgeGrey,
}

func (s *Server) statusBadge(c echo.Context) error {
	return s.badge(c, "status", func(_ context.Context, o store.Overview) (message, color string, err error) {
		return string(o.Status()), statusColors[o.Status()], nil
	})
}

func (s *Server) uptimeBadge(c echo.Context) error {
	window := badgeWindow(c, "30d")
	return s.badge(c, "uptime "+window, func(ctx context.Context, o store.Overview) (message, color string, err error) {
		u, err := s.uptime(ctx, o.Endpoint, window)
		if err != nil || u.Uptime == nil {
			return badgeNobody, badgeGrey, err
		}
		return percentText(*u.Uptime), uptimeColor(*u.Uptime), nil
	})
}

func (s *Server) latencyBadge(c echo.Context) error {
	window := badgeWindow(c, "24h")
	return s.badge(c, "latency "+window, func(ctx context.Context, o store.Overview) (message, color string, err error) {
		u, err := s.uptime(ctx, o.Endpoint, window)
		if err != nil || u.LatencyMS == nil {
			return badgeNobody, badgeGrey, err
		}
		return latencyText(u.LatencyMS.P50), badgeBlue, nil
	})
}

// badge answers with the badge of the endpoint in the path. One that is not public and one that is not there give the
// same bytes: a label must not hold the endpoint's name for that reason. A badge stands in somebody's page, where an
// error would be a broken picture: whatever is wrong, there is a picture.
func (s *Server) badge(c echo.Context, label string, read func(context.Context, store.Overview) (message, color string, err error)) error {
	shared(c, "public, max-age=60, stale-while-revalidate=300")
	b := badge{label: badgeLabelOf(c, label), message: badgeNobody, color: badgeGrey}
	message, color, err := s.publicly(c, read)
	switch {
	case err == nil:
		b.message, b.color = message, color
	case !errors.Is(err, store.ErrNotFound):
		s.cfg.Log.WarnContext(c.Request().Context(), "badge without data", "route", c.Path(), "error", err)
		c.Response().Header().Set("Cache-Control", "no-cache")
	}
	if strings.HasSuffix(c.Path(), ".json") {
		text, err := encode(shield{1, b.label, b.message, strings.TrimPrefix(b.color, "#")})
		if err != nil {
			return err
		}
		return cached(c, "application/json", text)
	}
	return cached(c, "image/svg+xml; charset=utf-8", b.draw(badgeStyle(c)))
}

// publicly reads an endpoint for the public; store.ErrNotFound for one that is not public.
func (s *Server) publicly(c echo.Context, read func(context.Context, store.Overview) (message, color string, err error)) (message, color string, err error) {
	ctx := c.Request().Context()
	o, err := s.read.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return "", "", err
	}
	if !o.Public {
		return "", "", store.ErrNotFound
	}
	return read(ctx, o)
}

// shield is what shields.io reads, and nothing else: it refuses members that it does not know.
type shield struct {
	SchemaVersion int    `json:"schemaVersion"`
	Label         string `json:"label"`
	Message       string `json:"message"`
	Color         string `json:"color"`
}

// badgeWindow returns the window asked for, or what is usual when there is no such window.
func badgeWindow(c echo.Context, usual string) string {
	if w, known := windowOf(c.QueryParam("window")); known {
		return w.name
	}
	return usual
}

// maxLabel bounds a label, in characters: a badge is one line of a page.
const maxLabel = 40

// badgeLabelOf returns the label asked for without what could not be drawn, or usual when nothing is left.
func badgeLabelOf(c echo.Context, usual string) string {
	label := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) { // unprintable: controls, and marks that turn the direction of text
			return -1
		}
		return r
	}, c.QueryParam("label"))
	label = strings.TrimSpace(label)
	if utf8.RuneCountInString(label) > maxLabel {
		label = string([]rune(label)[:maxLabel-1]) + "…"
	}
	return cmp.Or(label, usual)
}

// percentText writes an uptime with as many digits as it takes to tell it from 100 %, up to three.
func percentText(percent float64) string {
	if percent >= 99.9 && percent < 100 {
		return trimZeros(fmt.Sprintf("%.3f", percent)) + "%"
	}
	return trimZeros(fmt.Sprintf("%.2f", math.Floor(percent*100)/100)) + "%"
}

func trimZeros(number string) string { return strings.TrimRight(strings.TrimRight(number, "0"), ".") }

func uptimeColor(percent float64) string {
	switch {
	case percent >= 99.9:
		return badgeGreen
	case percent >= 99:
		return badgeOlive
	case percent >= 95:
		return badgeAmber
	}
	return badgeRed
}

func latencyText(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
