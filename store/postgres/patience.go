package postgres

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A server that fails over, or a firewall that forgets, may leave a connection without a word: nothing arrives, and no
// error either. These find that out, each in its place, where the URL does not say otherwise.
const (
	// connectTimeout bounds the making of a connection.
	connectTimeout = 10 * time.Second
	// pingTimeout bounds the question whether a connection that lay idle is still alive. One that is not is closed, and
	// the next one asked: callers with deadlines of seconds must find one that works.
	pingTimeout = 3 * time.Second
	// queryPatience bounds a query whose caller has set no deadline. No query of ours takes longer while all is well.
	queryPatience = patience(30 * time.Second)
)

// keepAlive finds a dead connection while nobody uses it, within half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// discoverSilence makes config find out about connections that died without a word.
func discoverSilence(config *pgxpool.Config) {
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	if config.PingTimeout == 0 {
		config.PingTimeout = pingTimeout
	}
	conn.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	conn.Tracer = queryPatience
}

// patience is a deadline for each query that has none. A tracer is the one place that every query passes. The bound is
// ours, not the server's statement_timeout: a server that is gone keeps no time, and poolers refuse that setting.
type patience time.Duration

var (
	_ pgx.QueryTracer = patience(0)
	_ pgx.BatchTracer = patience(0)
)

type cancelKey struct{}

func (p patience) start(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return context.WithValue(ctx, cancelKey{}, context.CancelFunc(func() {}))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p))
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (p patience) end(ctx context.Context) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (p patience) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return p.start(ctx)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (p patience) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	p.end(ctx)
}

// TraceBatchStart implements pgx.BatchTracer.
func (p patience) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return p.start(ctx)
}

// TraceBatchQuery implements pgx.BatchTracer.
func (p patience) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (p patience) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	p.end(ctx)
}
