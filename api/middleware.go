package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// clientAddress returns how to find out who asks. X-Forwarded-For is anybody's to write: it counts only as far as
// trusted proxies vouch for it.
func clientAddress(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		p = p.Masked()
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP:   p.Addr().AsSlice(),
			Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

const keyRequestID = "request_id"

func requestID(c echo.Context) string {
	id, _ := c.Get(keyRequestID).(string)
	return id
}

// observe counts and logs a request once it is answered. Routes are named by their template: addresses, queries and
// headers may hold what must not be kept.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		id := newRequestID()
		c.Set(keyRequestID, id)
		c.Response().Header().Set("X-Request-Id", id)
		if err := next(c); err != nil {
			c.Error(err)
		}
		took, status := time.Since(start), c.Response().Status
		if gone(c) && !c.Response().Committed {
			status = statusGone
		}
		if !streams(c.Path()) { // how long a page stands open says nothing about answering
			s.metrics.request(c, status, took)
		}
		log := s.cfg.Log.InfoContext
		if quiet(c.Path()) {
			log = s.cfg.Log.DebugContext
		}
		log(c.Request().Context(), "request answered", "method", method(c), "route", c.Path(), "status", status,
			"duration", took, "request_id", id)
		return nil
	}
}

// statusGone stands in the log and the metrics for the answer to somebody who left before it.
const statusGone = 499

// gone reports whether whoever asked has left.
func gone(c echo.Context) bool { return errors.Is(c.Request().Context().Err(), context.Canceled) }

// newRequestID is ours alone: one sent by a client could be made to look like another's.
func newRequestID() string {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never returns an error
	return hex.EncodeToString(b[:])
}

// quiet reports whether machines ask for a route so often that it would drown the log.
func quiet(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/metrics", "/static/*":
		return true
	}
	return strings.HasPrefix(path, "/badge/") || streams(path)
}

// streams reports whether a route answers for as long as somebody listens.
func streams(path string) bool {
	return path == eventsPath || path == publicEventsPath || path == siteEventsPath
}

// method returns the method of a request, or OTHER for one that is not in any table: it is a stranger's word.
func method(c echo.Context) string {
	switch m := c.Request().Method; m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "OTHER"
}

// recovered turns a panic into an internal error, with its stack for the log.
func (s *Server) recovered(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if e, ok := v.(error); ok && errors.Is(e, http.ErrAbortHandler) {
				panic(v) // net/http's own word for hanging up
			}
			err = internal(fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}()
		return next(c)
	}
}

// contentSecurityPolicy allows what our own pages are made of and nothing else: no inline script or style, no frame
// around us, no form or base that leads elsewhere.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secured sets the headers that every answer carries. Handlers of public answers loosen the last two.
func (s *Server) secured(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // no-referrer would take the Origin from our own forms as well
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		return next(c)
	}
}

// shared lets every site use an answer: badges stand in other people's pages, public JSON is read by their scripts.
func shared(c echo.Context, cacheControl string) {
	h := c.Response().Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", cacheControl)
}

// maxBody is far more than the largest endpoint needs: its headers and params are bounded to 80 KiB together.
const maxBody = 1 << 20

// bounded refuses bodies that are too large, before they are read where their length is known.
func (s *Server) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		body := r.Body
		err := error(&http.MaxBytesError{Limit: maxBody})
		if r.ContentLength <= maxBody {
			r.Body = http.MaxBytesReader(c.Response().Writer, body, maxBody)
			err = next(c)
		}
		if _, large := errors.AsType[*http.MaxBytesError](err); !large {
			return err
		}
		c.Error(err)
		drain(c, body)
		return nil
	}
}

// How much of a body that is too large is taken in, and for how long, after it was refused.
const (
	maxDrained    = 16 << 20
	drainPatience = 5 * time.Second
)

// drain sends the answer off and takes in what is left of a body. Hanging up on a client that sends its whole body
// before it reads would reset the connection, and the answer would be lost on the way.
func drain(c echo.Context, body io.Reader) {
	if c.Request().Header.Get("Expect") != "" && c.Request().ContentLength > maxBody {
		return // the client waits for a word before it sends anything, and this is the word
	}
	control := http.NewResponseController(c.Response().Writer)
	// A writer that cannot flush or has no deadline is not that of a connection, and a client that has left needs no
	// answer.
	_ = control.Flush()
	_ = control.SetReadDeadline(time.Now().Add(drainPatience))
	_, _ = io.CopyN(io.Discard, body, maxDrained)
}

// legible empties parameters of the path that no database would take as text. Nothing goes by the empty name.
func (s *Server) legible(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		values := slices.Clone(c.ParamValues())
		for i, v := range values {
			if !isText(v) {
				values[i] = ""
			}
		}
		c.SetParamValues(values...)
		return next(c)
	}
}

// isText reports whether every database can keep v as text.
func isText(v string) bool { return utf8.ValidString(v) && !strings.ContainsRune(v, 0) }

// sameOrigin refuses what another site makes a visitor's browser send.
func (s *Server) sameOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.origins.Check(c.Request()); err != nil {
			return fault(http.StatusForbidden, "Cross-origin request", "This request came from another site's page and was refused.")
		}
		return next(c)
	}
}
