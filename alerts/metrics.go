package alerts

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/store"
)

// How an attempt can end.
const (
	outcomeSent     = "sent"
	outcomePassed   = "passed"
	outcomeDeferred = "deferred"
	outcomeRetried  = "retried"
	outcomeFailed   = "failed"
)

type metrics struct {
	deliveries *prometheus.CounterVec
	digests    *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	panics     prometheus.Counter
	looked     prometheus.Gauge
}

// newMetrics makes every series of the types in senders, so that a rule sees the first refusal as an increase.
func newMetrics(r prometheus.Registerer, senders map[store.ChannelType]Sender) metrics {
	m := metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_deliveries_total",
			Help: "Attempts to deliver an alert, by type of channel and outcome: sent, passed because nobody has to hear it, deferred until somebody wants to, " +
				"retried later, or failed for good.",
		}, []string{"type", "outcome"}),
		digests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_digests_total",
			Help: "Messages that told of many incidents at once, by type of channel.",
		}, []string{"type"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rollcall_delivery_seconds",
			Help:    "How long attempts to deliver an alert took, by type of channel.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20},
		}, []string{"type"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_delivery_panics_total",
			Help: "Panics of senders. Each is a mistake of ours.",
		}),
		looked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rollcall_dispatcher_last_look_timestamp_seconds",
			Help: "When the database last said which alerts are due; 0 before it has.",
		}),
	}
	for t := range senders {
		m.seconds.WithLabelValues(string(t))
		m.digests.WithLabelValues(string(t))
		for _, outcome := range []string{outcomeSent, outcomePassed, outcomeDeferred, outcomeRetried, outcomeFailed} {
			m.deliveries.WithLabelValues(string(t), outcome)
		}
	}
	if r != nil {
		r.MustRegister(m.deliveries, m.digests, m.seconds, m.panics, m.looked)
	}
	return m
}

// observe counts an attempt to send.
func (m metrics) observe(t store.ChannelType, outcome string, took time.Duration) {
	m.count(t, outcome)
	m.seconds.WithLabelValues(string(t)).Observe(took.Seconds())
}

// count counts what ended without an attempt.
func (m metrics) count(t store.ChannelType, outcome string) {
	m.deliveries.WithLabelValues(string(t), outcome).Inc()
}

func (m metrics) digest(t store.ChannelType) { m.digests.WithLabelValues(string(t)).Inc() }
