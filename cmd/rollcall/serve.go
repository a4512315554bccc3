package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// serve runs the service until ctx ends.
func serve(ctx context.Context, args []string, std stdio) error {
	c, err := readConfig(args, std)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.listen, err)
	}
	defer listener.Close()
	unlock, err := claimDatabase(c.database)
	if err != nil {
		return err
	}
	defer unlock()
	db, err := openStore(ctx, c.database, std)
	if err != nil {
		return err
	}
	s, err := newService(ctx, c, db, std)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if err := s.greet(ctx, listener.Addr(), std); err != nil {
		return errors.Join(err, s.close())
	}
	return errors.Join(s.run(ctx, listener), s.close())
}

// service is every part of a running Rollcall.
type service struct {
	cfg        config
	log        *slog.Logger
	store      store.Store
	demo       *demo // nil without --demo
	recorder   *store.Recorder
	scheduler  *scheduler.Scheduler
	dispatcher *alerts.Dispatcher
	http       *http.Server
}

// newService builds every part and tells the scheduler of every endpoint. It starts nothing but the demo's servers.
func newService(ctx context.Context, c config, db store.Store, std stdio) (*service, error) {
	s := &service{cfg: c, log: newLogger(c, std), store: db}
	registry := newRegistry()
	prober := &probe.Prober{
		Version:   versionString(),
		PublicURL: c.publicURL,
		Egress:    probe.Egress{Allow: c.allowPrivate},
		Local:     true, // the API refuses commands and sockets: those that are kept came from who runs this service
		Proxy:     proxyFrom(std),
	}
	ask := prober.Probe
	if c.demo {
		d, err := startDemo(ctx)
		if err != nil {
			return nil, err
		}
		s.demo, ask = d, d.probeWith(prober)
		if err := s.registerDemo(ctx); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	} else if err := s.pauseDemo(ctx); err != nil {
		return nil, err
	}
	chains := &headCache{store: db, log: s.log}
	noticed := make(chan struct{}, 1)
	s.recorder = store.NewRecorder(store.RecorderConfig{Store: db, Judge: alerts.Judge, Log: s.log, Recorded: wake(noticed)})
	s.scheduler = scheduler.New(scheduler.Config{
		Location:    c.location,
		Concurrency: c.concurrency,
		Probe:       ask,
		Peers:       chains.peers,
		Record:      s.recorder.Record,
		Log:         s.log,
		Registerer:  registry,
	})
	s.dispatcher = alerts.New(alerts.Config{
		Store:      db,
		Senders:    map[store.ChannelType]alerts.Sender{store.ChannelSlack: alerts.NewSlack(alerts.NewClient(prober.Egress.DialContext))},
		Log:        s.log,
		Registerer: registry,
		PublicURL:  c.publicURL,
		Wake:       noticed,
	})
	registerRecorder(registry, s.recorder)
	server, err := api.New(api.Config{
		Store:          db,
		Log:            s.log,
		Registry:       registry,
		Location:       c.location,
		Version:        versionString(),
		PublicURL:      c.publicURL,
		AdminToken:     c.adminToken,
		TrustedProxies: []netip.Prefix(c.trustedProxies),
		Probe: func(ctx context.Context, t probe.Target) probe.Result {
			t.Peers = chains.peers(ctx, "", t)
			return ask(ctx, t)
		},
		CheckNow:    s.checkNow,
		Changed:     s.changed,
		Period:      scheduler.Period,
		TestChannel: s.dispatcher.Test,
		Backlog:     s.recorder.Waiting,
	})
	if err != nil {
		return nil, errors.Join(err, s.closeDemo())
	}
	s.http = newHTTPServer(server.Handler(), s.log)
	if err := s.follow(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read endpoints: %w", err), s.closeDemo())
	}
	return s, nil
}

func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rollcall_build_info",
		Help: "The version that is running, as a label.",
	}, []string{"version"})
	build.WithLabelValues(versionString()).Set(1)
	r.MustRegister(build)
	return r
}

func registerRecorder(r prometheus.Registerer, recorder *store.Recorder) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_recorder_waiting",
			Help: "Checks kept in memory because the database is away.",
		}, func() float64 { return float64(recorder.Waiting()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rollcall_recorder_dropped_total",
			Help: "Checks lost: too many waited, or the database refused them.",
		}, func() float64 { return float64(recorder.GivenUp()) }),
	)
}

// Timeouts of our own server. A check on demand may take as long as an endpoint's timeout, so writing has longer.
func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      6 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// wake returns a function that puts an element into ch when told so, unless there is one already.
func wake(ch chan struct{}) func(bool) {
	return func(yes bool) {
		if !yes {
			return
		}
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// run runs every part until ctx ends, then stops them in the order in which they feed each other: no new work is taken,
// what is in hand is finished and recorded, and what was recorded is told while there is time.
func (s *service) run(ctx context.Context, listener net.Listener) error {
	background := context.WithoutCancel(ctx)
	recording, stopRecording := context.WithCancel(background)
	defer stopRecording()
	dispatching, stopDispatching := context.WithCancel(background)
	defer stopDispatching()

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.recorder.Run(recording) })
	group.Go(func() error { return s.dispatcher.Run(dispatching) })
	group.Go(func() error { return ignoreClosed(s.http.Serve(listener)) })
	group.Go(func() error {
		<-ctx.Done()
		s.log.Info("stopping")
		return s.stopServing(background)
	})
	group.Go(func() error { return every(ctx, followEvery, s.logged("read endpoints", s.follow)) })
	group.Go(func() error { return every(ctx, pruneEvery, s.logged("prune checks", s.prune)) })
	group.Go(func() error {
		err := s.scheduler.Run(ctx)
		stopRecording()
		stopDispatching()
		return err
	})
	return group.Wait()
}

// stopServing lets requests under way finish, for a bounded time.
func (s *service) stopServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(s.http.Close())
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func (s *service) close() error {
	return errors.Join(s.closeDemo(), s.store.Close())
}

func (s *service) closeDemo() error {
	if s.demo == nil {
		return nil
	}
	return s.demo.Close()
}

// reachable returns an address by which a person on this machine reaches a listener: one on all addresses by name.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
}

// greet says where the service is, and how to get in when nobody can yet.
func (s *service) greet(ctx context.Context, addr net.Addr, std stdio) error {
	base := s.cfg.publicURL
	if base == "" {
		base = "http://" + reachable(addr)
	}
	fmt.Fprintf(std.err, "Rollcall %s is at %s\n", versionString(), base)
	users, err := s.store.UserCount(ctx)
	if err != nil || users > 0 || s.cfg.adminToken != "" {
		return err
	}
	secret, hash := store.NewSecret("")
	if err := s.store.PutSetupToken(ctx, hash, time.Now()); err != nil {
		return fmt.Errorf("make the setup link: %w", err)
	}
	fmt.Fprintf(std.err, "\nChoose a password here (the link works once):\n\n  %s/setup?token=%s\n\n", base, secret)
	return nil
}
