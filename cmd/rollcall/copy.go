package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/sqlite"
)

// copyMistakes returns everything that is wrong with --from and --to, and the file that is meant. URLs are not repeated.
func copyMistakes(from, to string) (file string, mistakes []error) {
	switch {
	case from == "":
		mistakes = append(mistakes, errors.New("--to goes with --from: name the SQLite file, like sqlite:rollcall.db"))
	case isPostgres(from):
		mistakes = append(mistakes, errors.New("--from must be a SQLite file, like sqlite:rollcall.db: from Postgres to Postgres, use pg_dump"))
	default:
		file = sqliteFile(from)
		if err := checkDatabase(file); err != nil {
			mistakes = append(mistakes, errors.New("--from must be a SQLite file, like sqlite:rollcall.db"))
		} else if _, err := os.Stat(file); err != nil {
			mistakes = append(mistakes, fmt.Errorf("--from: there is no database %s", file))
		}
	}
	switch {
	case to == "":
		mistakes = append(mistakes, errors.New("--from goes with --to: give the URL of the Postgres database, like postgres://…"))
	case !isPostgres(to):
		mistakes = append(mistakes, errors.New("--to must be a postgres:// URL"))
	}
	return file, mistakes
}

// sqliteFile returns the path in sqlite:PATH; a bare path is one.
func sqliteFile(from string) string {
	path, ok := strings.CutPrefix(from, "sqlite:")
	if !ok {
		return from
	}
	return strings.TrimPrefix(path, "//")
}

// copyDatabase copies everything from a SQLite file to Postgres and compares both at the end.
func copyDatabase(ctx context.Context, from, to string, std stdio) error {
	file, mistakes := copyMistakes(from, to)
	if len(mistakes) > 0 {
		return usageError{errors.Join(mistakes...)}
	}
	unlock, err := claimDatabase(file)
	if err != nil {
		return fmt.Errorf("%w: stop it first, what it would record meanwhile would be missing", err)
	}
	defer unlock()
	c, err := openCopy(ctx, file, to, std)
	if err != nil {
		return err
	}
	err = errors.Join(c.run(ctx, std), c.close())
	if err == nil {
		sayDone(file, std)
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: call the same again to go on where this was")
	}
	return err
}

// copying is a copy under way.
type copying struct {
	source   *sqlite.DB
	state    *sqlite.Export
	target   *postgres.Import
	progress *progress
	totals   map[string]int64 // rows by table
}

// openCopy opens both databases and brings their schemas up to date.
func openCopy(ctx context.Context, file, to string, std stdio) (*copying, error) {
	key, err := secretKey(file, std)
	if err != nil {
		return nil, err
	}
	sealer, err := store.NewSealer(key)
	if err != nil {
		return nil, err
	}
	before, after, err := sqlite.Migrate(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", file, err)
	}
	sayVersion(std.err, file, before, after)
	c := &copying{progress: newProgress(std), totals: map[string]int64{}}
	if c.source, err = sqlite.Open(ctx, file, sealer); err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", file, err)
	}
	if err := c.open(ctx, to, std); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *copying) open(ctx context.Context, to string, std stdio) (err error) {
	connecting, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	before, after, err := postgres.Migrate(connecting, to)
	if err != nil {
		return fmt.Errorf("open Postgres: %w", err)
	}
	sayVersion(std.err, "Postgres", before, after)
	if c.target, err = postgres.NewImport(connecting, to); err != nil {
		return fmt.Errorf("open Postgres: %w", err)
	}
	if c.state, err = c.source.Export(ctx); err != nil {
		return err
	}
	for _, t := range store.CopyTables {
		if c.totals[t.Name], err = c.state.Count(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func sayVersion(w io.Writer, name string, before, after int) {
	if before == after {
		fmt.Fprintf(w, "%s: the schema is up to date (version %d)\n", name, after)
		return
	}
	fmt.Fprintf(w, "%s: brought the schema from version %d to %d\n", name, before, after)
}

func (c *copying) close() error {
	var errs []error
	if c.state != nil {
		errs = append(errs, c.state.Close())
	}
	if c.target != nil {
		c.target.Close()
	}
	return errors.Join(append(errs, c.source.Close())...)
}

// run copies, compares, and says what is to be done next.
func (c *copying) run(ctx context.Context, std stdio) error {
	fingerprint, err := c.state.Fingerprint(ctx)
	if err != nil {
		return err
	}
	resumed, err := c.target.Begin(ctx, fingerprint)
	if err != nil {
		return err
	}
	if resumed {
		fmt.Fprintln(std.err, "going on with a copy that was interrupted")
	}
	for _, t := range store.CopyTables {
		if err := c.copyTable(ctx, t); err != nil {
			return fmt.Errorf("%w; call the same again to go on where this was", err)
		}
	}
	differences, err := c.compare(ctx, std.out)
	if err != nil {
		return err
	}
	if len(differences) > 0 {
		for _, d := range differences {
			fmt.Fprintf(std.err, "  %s\n", d)
		}
		return errors.New("the copy is not like the source: empty the Postgres database and start again; the source is as it was")
	}
	return c.target.Finish(ctx)
}

// emptySpool is how long a spool is in which nothing waits: it has a head alone.
const emptySpool = 64

// sayDone says what the service needs on the other database. The key itself is not printed.
func sayDone(file string, std stdio) {
	fmt.Fprintln(std.out, "everything was copied, and found to be the same on both sides")
	spool := spoolPath("", file)
	if info, err := os.Stat(spool); err == nil && info.Size() > emptySpool {
		fmt.Fprintf(std.out, "Checks may wait in %s that were never in the database: start the service on Postgres with --spool %s, "+
			"and it records them.\n", spool, spool)
	}
	if text, _ := std.env(keyVariable); text != "" {
		fmt.Fprintf(std.out, "The service on Postgres needs %s as it is set here: secrets are sealed with it.\n", keyVariable)
		return
	}
	fmt.Fprintf(std.out, "The service on Postgres needs %s set to the content of the key file beside the SQLite file: "+
		"secrets are sealed with it.\n", keyVariable)
}

func (c *copying) copyTable(ctx context.Context, t store.CopyTable) error {
	after, rows, complete, err := c.target.Progress(ctx, t)
	if err != nil || complete {
		return err
	}
	c.progress.start(t.Name, "rows", rows, c.totals[t.Name])
	for batch, err := range ahead(ctx, func(ctx context.Context) iter.Seq2[store.CopyBatch, error] { return c.state.Batches(ctx, t, after) }) {
		if err != nil {
			return err
		}
		if err := c.target.Put(ctx, t, batch); err != nil {
			return err
		}
		c.progress.add(int64(batch.Len()))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.progress.end()
	return c.target.Complete(ctx, t)
}

// batchOrError is what an iterator of batches yields.
type batchOrError struct {
	batch store.CopyBatch
	err   error
}

// ahead reads the next batch while the one before is being written. No read is under way any more when it returns.
func ahead(ctx context.Context, batches func(context.Context) iter.Seq2[store.CopyBatch, error]) iter.Seq2[store.CopyBatch, error] {
	return func(yield func(store.CopyBatch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		read := make(chan batchOrError, 1)
		go func() {
			defer close(read)
			for batch, err := range batches(ctx) {
				select {
				case read <- batchOrError{batch, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		defer func() {
			cancel()
			for range read { //nolint:revive // what was read ahead is not wanted any more
			}
		}()
		for r := range read {
			if !yield(r.batch, r.err) {
				return
			}
		}
	}
}

// compare reads both sides anew, prints what each table adds up to, and returns what differs.
func (c *copying) compare(ctx context.Context, w io.Writer) (differences []string, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TABLE\tROWS\tCOPIED\tSUM\tCOPIED\t")
	for _, t := range store.CopyTables {
		source, copied, err := c.sums(ctx, t)
		if err != nil {
			return nil, err
		}
		found := source.Differences(copied)
		verdict := "same"
		if len(found) > 0 {
			verdict = "DIFFERS"
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%016x\t%016x\t%s\n", t.Name, source.Rows, copied.Rows, source.Digest, copied.Digest, verdict)
		if t.Checks() {
			printVerdicts(table, source, copied)
		}
		for _, d := range found {
			differences = append(differences, t.Name+": "+d)
		}
	}
	return differences, table.Flush()
}

// printVerdicts prints how many checks there are of each verdict.
func printVerdicts(w io.Writer, source, copied store.CopySum) {
	here, there := source.Verdicts(), copied.Verdicts()
	for _, letter := range []byte("udxg?") {
		if here[letter]+there[letter] == 0 {
			continue
		}
		verdict, _ := store.VerdictOf(letter)
		fmt.Fprintf(w, "  %s\t%d\t%d\t\t\t\n", verdict, here[letter], there[letter])
	}
}

// sums adds a table up on both sides at once.
func (c *copying) sums(ctx context.Context, t store.CopyTable) (source, copied store.CopySum, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var copiedErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		copied, copiedErr = c.target.Sum(ctx, t, func(int64) {})
		if copiedErr != nil {
			cancel()
		}
	}()
	c.progress.start("comparing "+t.Name, "rows", 0, c.totals[t.Name])
	for batch, batchErr := range c.state.Batches(ctx, t, "") {
		if err = batchErr; err == nil {
			err = source.Add(t, batch)
		}
		if err != nil {
			cancel()
			break
		}
		c.progress.add(int64(batch.Len()))
	}
	<-done
	c.progress.end()
	if failed := slices.DeleteFunc([]error{copiedErr, err}, func(err error) bool { return err == nil || errors.Is(err, context.Canceled) }); len(failed) > 0 {
		return source, copied, failed[0]
	}
	return source, copied, errors.Join(err, copiedErr)
}
