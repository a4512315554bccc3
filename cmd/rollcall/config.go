package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// config is how `rollcall serve` was asked to run.
type config struct {
	listen         string
	database       string
	location       string
	allowPrivate   prefixes
	demo           bool
	publicURL      string
	concurrency    int
	perHost        int
	perLocation    int
	retention      time.Duration
	readDatabase   string // empty: the database
	spool          string // path of the file, or spoolOff
	spoolLimit     int    // in MiB
	references     addresses
	heartbeatURL   string // a secret
	smtp           string // a secret
	mailFrom       string
	mail           *alerts.EmailConfig // from the two above; nil: no mail is sent
	oidc           *api.OIDC           // a provider of identities; nil: people log in by passwords alone
	trustedProxies prefixes
	logFormat      string
	adminToken     string // from the environment only: a flag would show in the list of processes
	linkKey        []byte // derived from the database's key
	settings       []api.Setting
}

// Defaults that CONTRACT and README name.
const (
	defaultListen      = "127.0.0.1:8080"
	defaultDatabase    = "rollcall.db"
	defaultLocation    = "default"
	defaultConcurrency = 200
	defaultSpoolLimit  = store.DefaultSpoolLimit >> 20 // MiB
	spoolOff           = "off"
	defaultRetention   = 30 * 24 * time.Hour
	adminTokenVariable = "ROLLCALL_ADMIN_TOKEN"
	minAdminToken      = 16
)

// readConfig reads flags and environment. Its error is a usageError with every mistake.
func readConfig(args []string, std stdio) (config, error) {
	var c config
	fs := newFlags("serve", "serve [flags]", std)
	fs.StringVar(&c.listen, "listen", defaultListen, "`address` to serve the dashboard and the API on")
	databaseFlag(fs, &c.database)
	fs.StringVar(&c.location, "location", defaultLocation, "`name` of the place this instance probes from")
	fs.Var(&c.allowPrivate, "allow-private", "private `ranges` that endpoints and webhooks may lie in, like 10.0.0.0/8,127.0.0.0/8 (default none)")
	fs.BoolVar(&c.demo, "demo", false, "start with built-in endpoints, healthy and broken ones, on loopback")
	fs.StringVar(&c.publicURL, "public-url", "", "`URL` under which people reach this service, for links and cookies")
	fs.IntVar(&c.concurrency, "concurrency", defaultConcurrency, "`number` of probes at once")
	fs.IntVar(&c.perHost, "per-host", scheduler.DefaultPerHost, "`number` of probes of one host at once")
	fs.IntVar(&c.perLocation, "per-location", 0, "`number` of probes at once of all instances of this location together (default no such bound)")
	fs.DurationVar(&c.retention, "retention", defaultRetention, "`duration` for which single checks are kept; uptime is kept beyond it")
	fs.Var(&c.trustedProxies, "trusted-proxies", "`ranges` of reverse proxies whose X-Forwarded-For is believed (default none)")
	fs.StringVar(&c.logFormat, "log-format", "text", "`format` of the log: text or json")
	fs.StringVar(&c.readDatabase, "read-database", "", "postgres:// `URL` of a replica that pages, badges and charts are read from (default the database)")
	fs.StringVar(&c.spool, "spool", "", "`path` of the file in which checks wait while the database is away, or off (default beside a SQLite file, else rollcall.spool)")
	fs.IntVar(&c.spoolLimit, "spool-limit", defaultSpoolLimit, "`MiB` that the spool may grow to")
	fs.Var(&c.references, "reference", "`host:port` of servers that answer while this place has its network, several separated by commas: when they and most endpoints fail, the fault is ours (default none)")
	fs.StringVar(&c.heartbeatURL, "heartbeat-url", "", "`URL` to call each minute while all is well, of a service that tells somebody when the calls stay away")
	fs.StringVar(&c.smtp, "smtp", "", "smtp:// or smtps:// `URL` of the mail server that alerts by email go through, with user and password")
	fs.StringVar(&c.mailFrom, "mail-from", "", "`address` that mails come from, like \"Rollcall <alerts@example.com>\"")
	var oidc oidcFlags
	oidc.register(fs)
	rest, err := fs.parse(args)
	if _, ok := errors.AsType[usageError](err); err != nil && !ok {
		return c, err
	}
	c.adminToken, _ = std.env(adminTokenVariable)
	mistakes := append(joined(err), c.mistakes()...)
	server, wrong := readMail(c.smtp, c.mailFrom)
	c.mail, mistakes = server, append(mistakes, wrong...)
	c.oidc, wrong = oidc.read()
	mistakes = append(mistakes, wrong...)
	if len(rest) > 0 {
		mistakes = append(mistakes, fmt.Errorf("unexpected argument %q", rest[0]))
	}
	if len(mistakes) > 0 {
		return c, usageError{errors.Join(mistakes...)}
	}
	c.settings = fs.settings()
	c.publicURL = strings.TrimRight(c.publicURL, "/")
	c.spool = spoolPath(c.spool, c.database)
	return c, nil
}

// readMail reads how mail is sent; nil when it is not. No mistake repeats the password.
func readMail(smtp, from string) (*alerts.EmailConfig, []error) {
	if smtp == "" && from == "" {
		return nil, nil
	}
	var mistakes []error
	config, err := alerts.ParseSMTPURL(smtp)
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("--smtp %w", err))
	}
	address, err := mail.ParseAddress(from)
	if err != nil {
		mistakes = append(mistakes, errors.New("--mail-from must be the address that mails come from, like alerts@example.com"))
	} else {
		config.From = *address
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return &config, nil
}

// spoolPath returns where the spool is: as was said, else beside a SQLite file, else in the working directory.
func spoolPath(said, database string) string {
	switch {
	case said != "":
		return said
	case isPostgres(database):
		return "rollcall.spool"
	default:
		return database + ".spool"
	}
}

func databaseFlag(fs *flagSet, database *string) {
	fs.StringVar(database, "database", defaultDatabase, "`path` of a SQLite file, or a postgres:// URL")
}

// mistakes returns everything that is wrong with c's values.
func (c config) mistakes() []error {
	var mistakes []error
	add := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		add("--listen must be an address and a port, like 127.0.0.1:8080 or :8080")
	}
	for _, p := range store.LocationProblems("--location", c.location) {
		add("%s %s", p.Field, p.Message)
	}
	if err := checkDatabase(c.database); err != nil {
		mistakes = append(mistakes, err)
	}
	if u, err := url.Parse(c.publicURL); c.publicURL != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
		add("--public-url must be an http or https URL without a path, like https://status.example.com")
	}
	if c.concurrency < 1 || c.concurrency > 10_000 {
		add("--concurrency must be between 1 and 10000")
	}
	if c.perHost == 0 || c.perHost < -1 {
		add("--per-host must be 1 at least, or -1 for no such bound")
	}
	if c.perLocation < 0 {
		add("--per-location must be 1 at least, or 0 for no such bound")
	}
	if c.readDatabase != "" && (!isPostgres(c.readDatabase) || !isPostgres(c.database)) {
		add("--read-database must be the postgres:// URL of a replica of a Postgres database")
	}
	if c.spoolLimit < 1 {
		add("--spool-limit must be 1 at least")
	}
	if c.heartbeatURL != "" && !isWebURL(c.heartbeatURL) {
		add("--heartbeat-url must be an http or https URL")
	}
	if c.retention < time.Hour {
		add("--retention must be 1h at least")
	}
	if c.logFormat != "text" && c.logFormat != "json" {
		add("--log-format must be text or json")
	}
	if c.adminToken != "" && len(c.adminToken) < minAdminToken {
		add("environment variable %s must have %d characters at least: make one with `openssl rand -hex 32`", adminTokenVariable, minAdminToken)
	}
	return mistakes
}

// isWebURL reports whether text is an http or https URL with a host.
func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// joined takes an error made by errors.Join apart.
func joined(err error) []error {
	usage, ok := errors.AsType[usageError](err)
	if !ok {
		return nil
	}
	if many, ok := usage.error.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{usage.error}
}

func newLogger(c config, std stdio) *slog.Logger {
	if c.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(std.err, nil))
	}
	return slog.New(slog.NewTextHandler(std.err, nil))
}
