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
	"sync"
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
	collector, restore := newCollector(std.env)
	defer restore()
	db, err := openStore(ctx, c.database, std)
	if err != nil {
		return err
	}
	if c.linkKey, err = linkKey(c.database, std); err != nil {
		return errors.Join(err, db.Close())
	}
	s, err := newService(ctx, c, db, std)
	if err != nil {
		return errors.Join(err, db.Close()) // what else was opened ends with the process
	}
	if err := s.greet(ctx, listener.Addr(), std); err != nil {
		return errors.Join(err, s.close())
	}
	s.collector = collector
	return errors.Join(s.run(ctx, listener), s.close())
}

// service is every part of a running Rollcall.
type service struct {
	cfg        config
	log        *slog.Logger
	store      store.Store
	replica    store.Store // nil without --read-database
	demo       *demo       // nil without --demo
	ask        func(ctx context.Context, t probe.Target) probe.Result
	chains     *headCache
	spool      *store.Spool // nil with --spool off
	recorder   *store.Recorder
	leases     *scheduler.Leases // nil where the database is this process's own
	scheduler  *scheduler.Scheduler
	dispatcher *alerts.Dispatcher
	announcer  *announcer
	webhooks   *alerts.Webhook
	planner    *planner
	domains    domains
	watched    watched
	fares      fares
	linkKey    []byte        // of the links in messages that let a stranger do something
	noticed    chan struct{} // holds an element when there are notices to be delivered
	heartbeat  *heartbeat    // nil without --heartbeat-url
	collector  *collector    // nil where the environment sets the garbage collector
	http       *http.Server
	calendar   calendar // of tend

	following sync.Mutex
	seen      map[string]time.Time // guarded by following: endpoints that the scheduler was told of, by when they were changed
}

// newService builds every part and tells the scheduler of every endpoint. It starts nothing but the demo's servers.
func newService(ctx context.Context, c config, db store.Store, std stdio) (*service, error) {
	s := &service{
		cfg: c, log: newLogger(c, std), store: db, linkKey: c.linkKey, noticed: make(chan struct{}, 1), seen: map[string]time.Time{},
	}
	s.calendar.sure(time.Now(), time.Since(processBegan)) // a leap is one from here on
	if err := s.openRest(ctx, std); err != nil {
		return nil, err
	}
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
	s.ask = ask
	s.announcer = newAnnouncer(c.location, db, wake(s.noticed), s.log)
	s.chains = &headCache{store: db, log: s.log}
	s.planner = &planner{store: db}
	s.domains = domains{store: db, lookup: new(net.Resolver).LookupTXT}
	judge := alerts.Rules(scheduler.Period)
	judge.Maintained = s.planner.maintained
	s.recorder = store.NewRecorder(store.RecorderConfig{
		Store: db, Judge: judge, Log: s.log, Spool: s.spool, Recorded: wake(s.noticed),
	})
	scheduling := scheduler.Config{
		Location:    c.location,
		Concurrency: c.concurrency,
		PerHost:     c.perHost,
		Probe:       ask,
		Peers:       s.chains.peers,
		Record:      s.recorder.Record,
		Log:         s.log,
		Registerer:  registry,
		References:  c.references,
		Offline:     s.announcer.offline,
	}
	if leaser, ok := db.(store.Leaser); ok {
		s.leases = scheduler.NewLeases(scheduler.LeasesConfig{
			Leaser:     leaser,
			Location:   c.location,
			Changed:    s.shifted,
			Drain:      s.drain,
			Log:        s.log,
			Registerer: registry,
		})
		scheduling.Lease, scheduling.LeaseSince = s.leases.Owns, s.leases.OwnsSince
	}
	s.scheduler = scheduler.New(scheduling)
	s.limitProbes()
	outside := alerts.NewClient(prober.Egress.DialContext)
	strangers := alerts.NewClient(probe.Egress{}.DialContext) // what a stranger names is never on our own network
	s.dispatcher = alerts.New(alerts.Config{
		Store:          db,
		Senders:        newSenders(outside, c.mail),
		PublicSenders:  newSenders(strangers, c.mail),
		Log:            s.log,
		Registerer:     registry,
		PublicURL:      c.publicURL,
		Wake:           s.noticed,
		UnsubscribeURL: s.unsubscribeURL,
		Broken:         s.channelBroken,
		Unsubscribe:    s.unsubscribe,
		Maintained:     s.planner.maintained,
	})
	s.webhooks = alerts.NewWebhook(strangers)
	slack := s.newSlackApp(outside)
	registerRecorder(registry, s.recorder)
	if c.heartbeatURL != "" {
		s.heartbeat = &heartbeat{url: c.heartbeatURL, healthy: s.healthy, client: newHeartbeatClient(), log: s.log}
	}
	server, err := api.New(api.Config{
		Store:          db,
		Pages:          s.replica,
		Log:            s.log,
		Registry:       registry,
		Location:       c.location,
		Version:        versionString(),
		PublicURL:      c.publicURL,
		AdminToken:     c.adminToken,
		TrustedProxies: []netip.Prefix(c.trustedProxies),
		KeepPublic:     keepPublic,
		Settings:       c.settings,
		Probe: func(ctx context.Context, t probe.Target) probe.Result {
			t.Peers = s.chains.peers(ctx, "", t)
			return ask(ctx, t)
		},
		CheckNow:    s.checkNow,
		Changed:     s.changed,
		Period:      scheduler.Period,
		Due:         scheduler.Due,
		TestChannel: s.dispatcher.Test,
		Backlog:     s.recorder.Waiting,

		CheckTemplate: alerts.CheckTemplate,
		PreviewTemplate: func(text, kind string) (string, error) {
			return alerts.PreviewTemplate(text, alerts.Kind(kind))
		},
		WebhookSchema: alerts.WebhookSchema(),
		Noticed:       func() { wake(s.noticed)(true) },
		Windows:       windows,
		PlansChanged:  func(ctx context.Context) { s.logged("read plans", s.planner.refresh)(ctx) },
		Objectives:    s.objectives,
		LinkKey:       s.linkKey,
		OIDC:          c.oidc,
		AskSubscriber: s.askSubscriber,
		SubscribeBy:   subscribable(c),
		ProveDomain:   s.domains.prove,
		SlackAction:   slack.Action,
		SlackCommand:  slack.Command,
	})
	if err != nil {
		return nil, errors.Join(err, s.closeDemo())
	}
	s.http = newHTTPServer(server.Handler(), s.log)
	s.http.RegisterOnShutdown(server.EndStreams)
	if err := s.planner.refresh(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read plans of maintenance: %w", err), s.closeDemo())
	}
	if err := s.follow(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read endpoints: %w", err), s.closeDemo())
	}
	return s, nil
}

// keepPublic is how long public pages may be answered without the database. Checks of one endpoint are a minute apart, so that
// nobody misses it, and a page that everybody looks at in an outage costs next to nothing.
const keepPublic = 5 * time.Second

// openRest opens what the service works with beside its database.
func (s *service) openRest(ctx context.Context, std stdio) error {
	if s.cfg.spool != spoolOff {
		spool, _, err := store.OpenSpool(s.cfg.spool, int64(s.cfg.spoolLimit)<<20, s.log)
		if err != nil {
			return fmt.Errorf("%w: name another file with --spool, or turn it off with --spool %s", err, spoolOff)
		}
		s.spool = spool
	}
	if s.cfg.readDatabase != "" {
		replica, err := openReplica(ctx, s.cfg.readDatabase, std)
		if err != nil {
			return err
		}
		s.replica = replica
	}
	return nil
}

// shifted follows a change of the shards that are this instance's to probe, and of the number of those it shares them with.
func (s *service) shifted(ctx context.Context) error {
	s.limitProbes()
	return s.follow(ctx)
}

// limitProbes divides the probes that the instances of a location may have under way together.
func (s *service) limitProbes() {
	if s.cfg.perLocation == 0 {
		return
	}
	live := 1
	if s.leases != nil {
		live = max(1, s.leases.Live())
	}
	s.scheduler.SetLimit(min(s.cfg.concurrency, max(1, s.cfg.perLocation/live)))
}

// healthy returns nil while this instance does its work: the database is there, and so is this location's network.
func (s *service) healthy(ctx context.Context) error {
	if away := s.recorder.Stats().AwaySince; !away.IsZero() {
		return errors.New("the database is away")
	}
	if s.announcer.isOffline.Load() {
		return errors.New("this location is offline")
	}
	return s.store.Ping(ctx)
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
		}, func() float64 { return float64(recorder.Stats().Waiting) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_recorder_waiting_bytes",
			Help: "What the checks in memory take, about; beyond the bound of 32 MiB they go to the spool.",
		}, func() float64 { return float64(recorder.Stats().Bytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_spool_checks",
			Help: "Checks in the spool file because the database is away.",
		}, func() float64 { return float64(recorder.Stats().Spooled) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_spool_bytes",
			Help: "Size of the spool file.",
		}, func() float64 { return float64(recorder.Stats().SpoolBytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_spool_failing",
			Help: "1 while the spool cannot be written: a full disk, or its limit.",
		}, func() float64 { return oneIf(recorder.Stats().SpoolFails) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_recorder_lost_at_start",
			Help: "Checks that the process before had in memory only when it was killed.",
		}, func() float64 { return float64(recorder.Stats().LostAtStart) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rollcall_recorder_dropped_total",
			Help: "Checks lost: too many waited, or the database refused them.",
		}, func() float64 { return float64(recorder.GivenUp()) }),
	)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
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
	group.Go(func() error { return s.dispatcher.Run(dispatching) })
	s.announcer.begin()
	group.Go(func() error { return s.announcer.run(dispatching) })
	group.Go(func() error { return ignoreClosed(s.http.Serve(listener)) })
	group.Go(func() error {
		<-ctx.Done()
		s.log.Info("stopping")
		return s.stopServing(background)
	})
	group.Go(func() error { return every(ctx, followEvery, s.logged("read endpoints", s.follow)) })
	group.Go(func() error { return every(ctx, planEvery, s.logged("read plans of maintenance", s.planner.refresh)) })
	group.Go(func() error { return every(ctx, objectivesEvery, s.logged("judge objectives", s.judgeObjectives)) })
	group.Go(func() error { return every(ctx, tendEvery, s.logged("let go of subscriptions", s.pruneSubscriptions)) })
	group.Go(func() error { return every(ctx, tendEvery, s.logged("tend history", s.tend)) })
	group.Go(func() error { return s.domains.run(ctx, s.logged("look at domains", s.domains.recheck)) })
	group.Go(func() error { return s.collector.run(ctx) })
	if s.heartbeat != nil {
		group.Go(func() error { return every(ctx, heartbeatEvery, s.heartbeat.beat) })
	}
	leasing, stopLeasing := context.WithCancel(background)
	defer stopLeasing()
	if s.leases != nil {
		group.Go(func() error { return s.leases.Run(leasing) })
		group.Go(func() error { return every(ctx, followEvery, func(context.Context) { s.limitProbes() }) })
	}
	group.Go(func() error {
		err := s.scheduler.Run(ctx)
		stopRecording()
		stopDispatching()
		return err
	})
	group.Go(func() error {
		err := s.recorder.Run(recording)
		stopLeasing() // everything that was probed is recorded: others may go on
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
	errs := []error{s.closeDemo()}
	if s.spool != nil {
		errs = append(errs, s.spool.Close())
	}
	if s.replica != nil {
		errs = append(errs, s.replica.Close())
	}
	return errors.Join(append(errs, s.store.Close())...)
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
