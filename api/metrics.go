package api

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics count requests by the template of their route: addresses hold the names of endpoints, which are not public.
type metrics struct {
	requests *prometheus.HistogramVec
}

func newMetrics(r *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rollcall_http_request_duration_seconds",
			Help:    "How long answering took, by route, method and status.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"route", "method", "status"}),
	}
	if err := r.Register(m.requests); err != nil {
		return nil, fmt.Errorf("register HTTP metrics: %w", err)
	}
	return m, nil
}

func (m *metrics) request(c echo.Context, status int, took time.Duration) {
	route := c.Path()
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, method(c), strconv.Itoa(status)).Observe(took.Seconds())
}

// getMetrics shows everything on the registry to Prometheus.
func (s *Server) getMetrics(c echo.Context) error {
	promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError,
	}).ServeHTTP(c.Response(), c.Request())
	return nil
}
