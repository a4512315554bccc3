package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rollcallhq/rollcall/api"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// endpoints manages endpoints straight in the database. A service that runs on it follows within seconds.
func endpoints(ctx context.Context, args []string, std stdio) error {
	c, rest, err := readEndpoints(args, std)
	if err != nil {
		return err
	}
	do, err := c.command(rest)
	if err != nil {
		return err
	}
	db, err := openKnownStore(ctx, c.database, std)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, db, std), db.Close())
}

// endpointsCommand is how `rollcall endpoints` was called.
type endpointsCommand struct {
	database string
	json     bool
	secrets  bool
	headers  headerFlag
	tags     listFlag
	channels listFlag
	given    map[string]any // members of the endpoint to add, by their JSON names

	program string // of the endpoint to add, with its arguments, in place of a URL
	env     envFlag
	dir     string
	options optionFlags
}

func readEndpoints(args []string, std stdio) (*endpointsCommand, []string, error) {
	c := &endpointsCommand{given: map[string]any{}}
	fs := newFlags("endpoints", "endpoints list | add URL | add --command 'PROGRAM ARGUMENT…' | remove SLUG… | apply FILE | export [flags]", std)
	databaseFlag(fs, &c.database)
	fs.BoolVar(&c.json, "json", false, "list: as JSON")
	fs.BoolVar(&c.secrets, "secrets", false, "export: with secret header values, keys and client secrets, and whole URLs")
	for _, f := range []struct{ flag, member, usage string }{
		{"name", "name", "add: `name` to show (default the host)"},
		{"slug", "slug", "add: `slug` in addresses (default from the name)"},
		{"kind", "kind", "add: `kind` of endpoint: " + kindList()},
		{"schedule", "schedule", "add: `schedule` like '@every 60s' or '*/5 * * * *'"},
		{"timeout", "timeout", "add: `duration` a check may take"},
		{"degraded-over", "degraded_over", "add: `duration` above which an answer counts as degraded"},
	} {
		fs.Func(f.flag, f.usage, func(text string) error {
			c.given[f.member] = text
			return nil
		})
	}
	var method, params string
	var public bool
	fs.StringVar(&method, "method", "", "add: `method` to call, for kind jsonrpc")
	fs.StringVar(&params, "params", "", "add: `JSON` parameters, for kind jsonrpc")
	fs.BoolVar(&public, "public", false, "add: show it on the status page and as a badge")
	fs.Var(&c.headers, "header", "add: `'Name: value'`, kept as a secret; may be given several times")
	fs.Var(&c.tags, "tag", "add: `tag`; may be given several times")
	fs.Var(&c.channels, "channel", "add: `id` of a channel to alert; may be given several times")
	var contractNotices bool
	fs.BoolVar(&contractNotices, "contract-notices", false, "add: tell the channels when the tool list changes")
	fs.StringVar(&c.program, "command", "", "add: `program` with arguments to talk to over its standard input and output")
	fs.Var(&c.env, "env", "add: `NAME=value` for --command, kept as a secret; may be given several times")
	fs.StringVar(&c.dir, "dir", "", "add: `directory` that --command runs in")
	c.options.register(fs)
	rest, err := fs.parse(args)
	if err != nil {
		return nil, nil, err
	}
	if public {
		c.given["public"] = true
	}
	if contractNotices {
		c.given["contract_notices"] = true
	}
	request := map[string]any{}
	if method != "" {
		request["method"] = method
		if c.given["kind"] == nil {
			c.given["kind"] = string(probe.KindJSONRPC)
		}
	}
	if params != "" {
		if !json.Valid([]byte(params)) {
			return nil, nil, usageError{errors.New("--params are not JSON")}
		}
		request["params"] = json.RawMessage(params)
	}
	if len(request) > 0 {
		c.given["request"] = request
	}
	return c, rest, nil
}

// listFlag is a flag that may be given several times.
type listFlag []string

func (l *listFlag) String() string { return "" }

func (l *listFlag) Set(text string) error {
	*l = append(*l, text)
	return nil
}

// command returns what the words after `rollcall endpoints` ask for.
func (c *endpointsCommand) command(words []string) (func(context.Context, store.Store, stdio) error, error) {
	verb := ""
	if len(words) > 0 {
		verb, words = words[0], words[1:]
	}
	switch {
	case verb == "list" && len(words) == 0:
		return c.list, nil
	case verb == "add" && len(words) == 0 && c.program != "":
		return func(ctx context.Context, db store.Store, std stdio) error { return c.add(ctx, db, std, "") }, nil
	case verb == "add" && c.program != "":
		return nil, usageError{errors.New("a URL or a --command, not both")}
	case verb == "add" && len(c.env)+len(c.dir) > 0:
		return nil, usageError{errors.New("--env and --dir go with --command only")}
	case verb == "add" && len(words) == 1:
		return func(ctx context.Context, db store.Store, std stdio) error { return c.add(ctx, db, std, words[0]) }, nil
	case verb == "remove" && len(words) > 0:
		return func(ctx context.Context, db store.Store, std stdio) error { return remove(ctx, db, std, words) }, nil
	case verb == "apply" && len(words) == 1:
		return func(ctx context.Context, db store.Store, std stdio) error { return apply(ctx, db, std, words[0]) }, nil
	case verb == "export" && len(words) == 0:
		return c.export, nil
	}
	return nil, usageError{errors.New("say what to do: list, add URL, add --command …, remove SLUG…, apply FILE, or export")}
}

func (c *endpointsCommand) list(ctx context.Context, db store.Store, std stdio) error {
	page, err := db.Endpoints(ctx, store.EndpointFilter{Limit: -1})
	if err != nil {
		return err
	}
	if c.json {
		items, slugs := make([]api.Endpoint, 0, len(page.Items)), api.Slugs(page.Items)
		for _, o := range page.Items {
			items = append(items, api.EndpointJSON(o, slugs))
		}
		return writeJSON(std.out, map[string]any{"items": items})
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SLUG\tSTATUS\tSINCE\tKIND\tSCHEDULE\tURL")
	for _, o := range page.Items {
		since := "-"
		if !o.State.Since.IsZero() {
			since = o.State.Since.UTC().Format(time.DateTime) + "Z"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", o.Slug, o.Status(), since, o.Kind, o.Schedule, printable(api.AddressOf(o.Endpoint)))
	}
	return w.Flush()
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// add registers one endpoint; unlike apply it never changes one that is there.
func (c *endpointsCommand) add(ctx context.Context, db store.Store, std stdio, url string) error {
	headers, mistakes := c.headers.headers()
	if c.program == "" {
		c.given["url"] = url
	} else {
		mistakes = append(mistakes, c.giveCommand()...)
	}
	more, err := c.giveOptions()
	if err != nil {
		return err
	}
	mistakes = append(mistakes, more...)
	if len(headers) > 0 {
		c.given["headers"] = headers
	}
	if len(c.tags) > 0 {
		c.given["tags"] = c.tags
	}
	if len(c.channels) > 0 {
		c.given["channels"] = c.channels
	}
	doc, err := json.Marshal(c.given)
	if err != nil {
		return err
	}
	registrar := api.NewRegistrar(db, scheduler.Period)
	plan, err := registrar.Plan(ctx, doc)
	if err != nil {
		if err = mistakesOr(err, ""); joined(err) == nil {
			return err
		}
		mistakes = append(mistakes, joined(err)...)
	}
	if len(mistakes) > 0 {
		return usageError{errors.Join(mistakes...)}
	}
	if plan.Slug != "" {
		return usageError{fmt.Errorf("endpoint %s is there already: choose another --name, or change it with `rollcall endpoints apply`", plan.Slug)}
	}
	o, err := registrar.Do(ctx, plan)
	if err != nil {
		return mistakesOr(err, "")
	}
	fmt.Fprintf(std.out, "%s is registered\n", o.Slug)
	return nil
}

// giveCommand adds the process that the endpoint is to be, and returns what is wrong with how it was given.
func (c *endpointsCommand) giveCommand() []error {
	env, mistakes := c.env.variables()
	words, err := splitCommand(c.program)
	if err != nil {
		mistakes = append(mistakes, fmt.Errorf("--command: %w", err))
		words = []string{c.program} // so that no program is missed, too
	}
	c.given["command"] = probe.Command{Args: words, Env: env, Dir: c.dir}
	return mistakes
}

// giveOptions adds the members that the flags for options stand for, and returns what is wrong with how they were given.
func (c *endpointsCommand) giveOptions() (mistakes []error, err error) {
	options, mistakes := c.options.read()
	e := store.Endpoint{Options: options}
	form := api.EndpointJSON(store.Overview{Endpoint: e}, nil)
	form.Reveal(e)
	for part, into := range map[any]map[string]any{&form.Options: c.given, &form.Request: c.request()} {
		text, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(text, &into)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.request()) == 0 {
		delete(c.given, "request")
	}
	return mistakes, nil
}

// request returns what the endpoint to add is asked.
func (c *endpointsCommand) request() map[string]any {
	request, ok := c.given["request"].(map[string]any)
	if !ok {
		request = map[string]any{}
		c.given["request"] = request
	}
	return request
}

// mistakesOr turns the mistakes of an input into a usage error, each with where it stands in front, and returns any
// other error as it is.
func mistakesOr(err error, where string) error {
	sentences := api.Mistakes(err)
	if sentences == nil {
		return err
	}
	errs := make([]error, len(sentences))
	for i, sentence := range sentences {
		errs[i] = errors.New(where + sentence)
	}
	return usageError{errors.Join(errs...)}
}

// remove removes all the endpoints named, or none when one of them is not there.
func remove(ctx context.Context, db store.Store, std stdio, slugs []string) error {
	var missing []error
	for _, slug := range slugs {
		if _, err := db.Endpoint(ctx, slug); errors.Is(err, store.ErrNotFound) {
			missing = append(missing, fmt.Errorf("there is no endpoint %q: nothing is removed", slug))
		} else if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return usageError{errors.Join(missing...)}
	}
	for _, slug := range slugs {
		if err := db.DeleteEndpoint(ctx, slug); err != nil {
			return fmt.Errorf("remove %s: %w", slug, err)
		}
		fmt.Fprintf(std.out, "%s is removed with its history\n", slug)
	}
	return nil
}

// apply registers and changes what a file describes. It reads all of it first: with one mistake, nothing is done.
func apply(ctx context.Context, db store.Store, std stdio, path string) error {
	docs, err := readDocuments(path, std)
	if err != nil {
		return err
	}
	registrar := api.NewRegistrar(db, scheduler.Period)
	for _, doc := range docs {
		if err := registrar.Expect(ctx, doc); err != nil {
			return err
		}
	}
	plans := make([]api.Planned, len(docs))
	mistakes := doubles(docs)
	for i, doc := range docs {
		plans[i], err = registrar.Plan(ctx, doc)
		if err == nil {
			continue
		}
		usage, ok := errors.AsType[usageError](mistakesOr(err, fmt.Sprintf("endpoints[%d]: ", i)))
		if !ok {
			return err
		}
		mistakes = append(mistakes, usage.error)
	}
	circles, err := registrar.Circles(ctx, plans)
	if err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(circles)) {
		mistakes = append(mistakes, mistakesOr(circles[i], fmt.Sprintf("endpoints[%d]: ", i)))
	}
	if len(mistakes) > 0 {
		return usageError{errors.Join(mistakes...)}
	}
	slugs := make([]string, len(plans))
	for i, plan := range plans {
		o, err := registrar.Do(ctx, plan)
		if err != nil {
			return mistakesOr(err, fmt.Sprintf("endpoints[%d]: ", i))
		}
		slugs[i] = o.Slug
		verb := "changed"
		if plan.Slug == "" {
			verb = "registered"
		}
		fmt.Fprintf(std.out, "%s is %s\n", o.Slug, verb)
	}
	if i, err := registrar.Relate(ctx, plans, slugs); err != nil {
		return mistakesOr(err, fmt.Sprintf("endpoints[%d]: ", i))
	}
	return nil
}

// doubles names the endpoints of a file that share a slug or name: the later would change the earlier.
func doubles(docs []json.RawMessage) (mistakes []error) {
	seen := map[string]int{}
	for i, doc := range docs {
		var e struct{ Slug, Name string }
		if json.Unmarshal(doc, &e) != nil {
			continue // Plan says what is wrong
		}
		for member, value := range map[string]string{"slug": e.Slug, "name": store.Fold(e.Name)} {
			if value == "" {
				continue
			}
			if first, double := seen[member+value]; double {
				mistakes = append(mistakes, fmt.Errorf("endpoints[%d]: %s is that of endpoints[%d] too", i, member, first))
				continue
			}
			seen[member+value] = i
		}
	}
	return mistakes
}

// maxFile bounds a file of endpoints: a hundred thousand of them fit.
const maxFile = 64 << 20

// readDocuments reads a file of endpoints, YAML or JSON, "-" for standard input: an object with the list "endpoints".
func readDocuments(path string, std stdio) ([]json.RawMessage, error) {
	in := std.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it is only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, usageError{fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)}
	}
	var file struct {
		Endpoints []map[string]any `yaml:"endpoints"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, usageError{fmt.Errorf("%s cannot be read: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	docs := make([]json.RawMessage, len(file.Endpoints))
	for i, e := range file.Endpoints {
		if docs[i], err = json.Marshal(e); err != nil {
			return nil, usageError{fmt.Errorf("endpoints[%d] of %s cannot be written as JSON: %w", i, path, err)}
		}
	}
	return docs, nil
}

// export prints every endpoint as a file for apply. Without --secrets, what is secret is left out: apply to the same
// database keeps it.
func (c *endpointsCommand) export(ctx context.Context, db store.Store, std stdio) error {
	page, err := db.Endpoints(ctx, store.EndpointFilter{Limit: -1})
	if err != nil {
		return err
	}
	list, slugs := make([]map[string]any, 0, len(page.Items)), api.Slugs(page.Items)
	for _, o := range page.Items {
		e := api.EndpointJSON(o, slugs)
		if c.secrets {
			e.Reveal(o.Endpoint)
		}
		members, err := exported(e)
		if err != nil {
			return err
		}
		list = append(list, members)
	}
	enc := yaml.NewEncoder(std.out)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(map[string]any{"endpoints": list}), enc.Close())
}

// exported returns the members of e that describe it, without what the service found out.
func exported(e api.Endpoint) (map[string]any, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	for _, name := range []string{"status", "since", "last_check", "places", "created_at", "updated_at"} {
		delete(members, name)
	}
	return members, nil
}
