package scheduler

import (
	"errors"

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
	jumps  prometheus.Counter
	// discarded counts checks that came to an end and were not recorded.
	discarded *prometheus.CounterVec
}

// The reasons for which a check is discarded.
const (
	discardedLease     = "lease_lost"
	discardedUndecided = "undecided"
	discardedStood     = "stood_still"
)

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
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60},
		}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_scheduler_missed_total",
			Help: "Ticks that passed because the check before took too long, no slot was free or the clock jumped.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_probe_panics_total",
			Help: "Probes that panicked and were not recorded: bugs of Rollcall.",
		}),
		jumps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_clock_jumps_total",
			Help: "How often the wall clock jumped or this process stood still, so that every endpoint was planned anew.",
		}),
		discarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_checks_discarded_total",
			Help: "Checks that ended and were not recorded: their endpoint went to another instance, this process stood still, or " +
				"it could not be told whether this location is offline.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{discardedLease, discardedUndecided, discardedStood} {
		m.discarded.WithLabelValues(reason)
	}
	if r == nil {
		return m
	}
	r.MustRegister(m.probes, m.steps, m.lag, m.missed, m.panics, m.jumps, m.discarded)
	m.registerGauges(r, s)
	return m
}

// registerGauges adds what is read off the scheduler when somebody looks. None of it takes long, however many endpoints
// there are: its lock is that of the schedule.
func (m *metrics) registerGauges(r prometheus.Registerer, s *Scheduler) {
	locked := func(read func() int) func() float64 {
		return func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(read())
		}
	}
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_probes_running",
			Help: "Probes under way.",
		}, locked(func() int { return s.running })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_probes_limit",
			Help: "How many probes may be under way at once.",
		}, locked(func() int { return s.limit })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_endpoints_scheduled",
			Help: "Endpoints that are due some time: known and not paused.",
		}, locked(func() int { return s.scheduled })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_scheduler_queue",
			Help: "Endpoints that are due and wait for a free slot.",
		}, locked(func() int { return s.queue.due(s.now()) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_scheduler_waiting_for_host",
			Help: "Endpoints that are due and wait for a probe of the same host to end.",
		}, locked(func() int { return s.hostWaiting })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_location_offline",
			Help: "1 while this location has no network and its checks are unknown.",
		}, func() float64 {
			if s.guard.isOffline() {
				return 1
			}
			return 0
		}),
	)
}

// discard counts a check that is not recorded for a reason that is worth a count.
func (m *metrics) discard(err error) {
	switch {
	case errors.Is(err, ErrLeaseLost):
		m.discarded.WithLabelValues(discardedLease).Inc()
	case errors.Is(err, ErrUndecided):
		m.discarded.WithLabelValues(discardedUndecided).Inc()
	case errors.Is(err, ErrStoodStill):
		m.discarded.WithLabelValues(discardedStood).Inc()
	}
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
