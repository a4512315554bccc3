package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
)

// metrics are what /metrics shows of probing. No label names an endpoint: the page is public, endpoints may not be.
type metrics struct {
	probes *prometheus.CounterVec
	steps  *prometheus.HistogramVec
	lag    prometheus.Histogram
	missed prometheus.Counter
	panics prometheus.Counter
}

func newMetrics(r prometheus.Registerer, s *Scheduler) *metrics {
	m := &metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_probes_total",
			Help: "Probes that ended, by kind of endpoint, verdict and deciding class.",
		}, []string{"kind", "verdict", "class"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rollcall_step_latency_seconds",
			Help:    "Latency of the steps of probes that went well, by kind of endpoint and step.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"kind", "step"}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "rollcall_scheduler_lag_seconds",
			Help:    "How late probes started.",
			Buckets: []float64{.001, .005, .01, .05, .1, .25, .5, 1, 5, 15, 60},
		}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_scheduler_missed_total",
			Help: "Ticks that passed because the check before took too long or no slot was free.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_probe_panics_total",
			Help: "Probes that panicked and were not recorded: bugs of Rollcall.",
		}),
	}
	if r == nil {
		return m
	}
	r.MustRegister(m.probes, m.steps, m.lag, m.missed, m.panics,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_probes_running",
			Help: "Probes under way.",
		}, func() float64 { return float64(len(s.slots)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_endpoints_scheduled",
			Help: "Endpoints that are due some time: known and not paused.",
		}, func() float64 { return float64(s.queued(time.Time{})) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_scheduler_queue",
			Help: "Endpoints that are due and wait for a free slot.",
		}, func() float64 { return float64(s.queued(time.Now())) }),
	)
	return m
}

// queued counts the entries due until a time; all entries when it is zero.
func (s *Scheduler) queued(until time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.IsZero() {
		return len(s.queue)
	}
	n := 0
	for _, en := range s.queue {
		if !en.due.After(until) {
			n++
		}
	}
	return n
}

func (m *metrics) observe(r probe.Result) {
	m.probes.WithLabelValues(string(r.Kind), string(r.Verdict), string(classOf(r))).Inc()
	for _, step := range r.Steps {
		if step.Class == "" {
			m.steps.WithLabelValues(string(r.Kind), stepLabel(r.Kind, step.Name)).Observe(step.Latency.Seconds())
		}
	}
}

// stepLabel keeps the number of series bounded: the steps of a plain JSON-RPC endpoint are named by whoever registers it.
func stepLabel(k probe.Kind, name string) string {
	if k == probe.KindJSONRPC {
		return "call"
	}
	return name
}
