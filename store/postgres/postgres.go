// Package postgres remembers in a Postgres database what store.Store says a database must. Several instances may share
// one database: whoever changes anything kept about an endpoint locks its row first, groups of them in the order of
// their ids.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rollcallhq/rollcall/store"
)

var _ store.Store = (*DB)(nil)

// DB is a store in a Postgres database.
type DB struct {
	pool   *pgxpool.Pool
	sealer *store.Sealer
	memory memory
	rooms  rooms
}

// Open connects to the database at a postgres:// URL and brings its schema up to date. Secrets in it are sealed by
// sealer; store.ErrWrongKey when the database was made with another key. It waits no longer than ctx and connectTimeout
// allow, and its error never holds the password. The caller closes the DB.
func Open(ctx context.Context, url string, sealer *store.Sealer) (*DB, error) {
	if sealer == nil {
		return nil, errNoKey
	}
	pool, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	db := &DB{pool: pool, sealer: sealer}
	if err := db.prepare(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return db, nil
}

// OpenReplica connects to a copy of a database that another process of this version keeps up to date, such as a hot standby.
// Nothing is written there; methods that write fail. It need not be reachable yet.
func OpenReplica(ctx context.Context, url string, sealer *store.Sealer) (*DB, error) {
	if sealer == nil {
		return nil, errNoKey
	}
	pool, err := newPool(ctx, url)
	if err != nil {
		return nil, err
	}
	return &DB{pool: pool, sealer: sealer}, nil
}

var errNoKey = errors.New("a database needs a key to seal secrets with")

// Migrate brings the schema of the database at url up to date and says which version it had and has.
func Migrate(ctx context.Context, url string) (from, to int, err error) {
	pool, err := connect(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer pool.Close()
	return migrate(ctx, pool)
}

func connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	pool, err := newPool(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreachable(pool.Config().ConnConfig, err)
	}
	return pool, nil
}

// newPool makes a pool that connects when it is first used.
func newPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The parser's own words may repeat parts of the URL, and with them the password.
		return nil, errors.New("the URL of the database cannot be read: write it like " +
			"postgres://user:password@host:5432/database, with % and two hex digits for special characters of the password")
	}
	conn := config.ConnConfig
	discoverSilence(config)
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "rollcall"
	}
	if !pooled(conn) {
		set(conn, "statement_timeout", strconv.FormatInt(statementTimeout.Milliseconds(), 10))
		set(conn, "jit", "off") // to compile a query takes longer than any of ours
	}
	config.AfterConnect = timesInUTC
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, unreachable(conn, err)
	}
	return pool, nil
}

// set has the server give a connection a setting, unless the URL says otherwise.
func set(conn *pgx.ConnConfig, name, value string) {
	if _, said := conn.RuntimeParams[name]; !said {
		conn.RuntimeParams[name] = value
	}
}

// statementTimeout bounds a statement at the server, which goes on with one that its client gave up.
const statementTimeout = 30 * time.Second

// pooled reports whether the URL says that a pooler in transaction mode stands in between: default_query_exec_mode=exec.
// Then nothing may rest on the connection, neither prepared statements nor settings.
func pooled(conn *pgx.ConnConfig) bool {
	switch conn.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return true
	}
	return false
}

func timesInUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name:  "timestamptz",
		OID:   pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// unreachable words an error of connecting on one line and without the password.
func unreachable(config *pgx.ConnConfig, err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if config.Password != "" {
		text = strings.ReplaceAll(text, config.Password, "…")
	}
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == "08P01" && !pooled(config) {
		text += ": a pooler stands in between; in transaction mode it wants default_query_exec_mode=exec in the URL"
	}
	return connectError{fmt.Sprintf("no connection to Postgres at %s:%d: %s", config.Host, config.Port, text), err}
}

type connectError struct {
	text  string
	cause error
}

func (e connectError) Error() string { return e.text }
func (e connectError) Unwrap() error { return e.cause }

// prepare brings the schema up to date and makes sure of the key.
func (db *DB) prepare(ctx context.Context) error {
	if _, _, err := migrate(ctx, db.pool); err != nil {
		return err
	}
	if err := db.refuseHalfCopied(ctx); err != nil {
		return err
	}
	if err := db.write(ctx, "add up days", func(tx pgx.Tx) error {
		if err := lock(ctx, tx, lockSchema); err != nil {
			return err
		}
		return addDays(ctx, tx)
	}); err != nil {
		return err
	}
	now := time.Now()
	if _, err := db.Tend(ctx, store.Retention{Now: now}); err != nil {
		return err
	}
	return db.write(ctx, "check the secret key", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO secret_key (id, proof)
			VALUES (1, $1)
			ON CONFLICT DO NOTHING`, db.sealer.SealProof())
		if err != nil {
			return err
		}
		var proof []byte
		if err := tx.QueryRow(ctx, `SELECT proof FROM secret_key`).Scan(&proof); err != nil {
			return err
		}
		return db.sealer.CheckProof(proof)
	})
}

// refuseHalfCopied returns an error when a copy into this database has not come to its end: a service would make something
// of it that the rest of the copy does not fit.
func (db *DB) refuseHalfCopied(ctx context.Context) error {
	var half bool
	if err := db.pool.QueryRow(ctx, `SELECT to_regclass('copy_progress') IS NOT NULL`).Scan(&half); err != nil {
		return explain("look for an interrupted copy", err)
	}
	if half {
		return errors.New("a copy into this database was interrupted: call the same `rollcall migrate --from … --to …` again")
	}
	return nil
}

// Ping implements store.Store.
func (db *DB) Ping(ctx context.Context) error { return explain("ping", checkVersion(ctx, db.pool)) }

// Close waits for transactions under way and closes all connections.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// maxAttempts bounds how often a transaction that got in another's way is tried.
const maxAttempts = 5

// write does what is one transaction that may change something. do may be called again when the transaction got in
// another's way.
func (db *DB) write(ctx context.Context, what string, do func(tx pgx.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := pgx.BeginFunc(ctx, db.pool, do)
		if attempt == maxAttempts || !inTheWay(err) {
			return explain(what, err)
		}
	}
}

// read does what is one transaction that changes nothing and sees one state of the database throughout.
func (db *DB) read(ctx context.Context, what string, do func(tx pgx.Tx) error) error {
	oneState := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return explain(what, pgx.BeginTxFunc(ctx, db.pool, oneState, do))
}

// The SQLSTATE codes that mean something to us (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	// foreignKeyViolation can only mean that a channel or user was removed while it was about to be named.
	foreignKeyViolation       = "23503"
	characterNotInRepertoire  = "22021"
	untranslatableCharacter   = "22P05"
	invalidTextRepresentation = "22P02"
)

// inTheWay reports whether another transaction was the cause of err, so that trying again helps.
func inTheWay(err error) bool {
	return hasCode(err, serializationFailure, deadlockDetected, foreignKeyViolation)
}

// explain says what was being done when the database failed. What is not a failure passes as it is.
func explain(what string, err error) error {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return store.ErrNotFound
	case hasCode(err, characterNotInRepertoire, untranslatableCharacter, invalidTextRepresentation):
		return store.ErrNotFound // asked for by a text that cannot be kept, and so is not there
	case !store.IsFailure(err):
		return err
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

func hasCode(err error, codes ...string) bool {
	failure, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if failure.Code == code {
			return true
		}
	}
	return false
}
