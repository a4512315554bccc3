package api

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Command is the process that an endpoint is, as it stands in JSON: what looks like a secret is cut out of its arguments.
type Command struct {
	Args []string `json:"args"`
	Env  []Header `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`
}

// CommandJSON returns c as it stands in JSON; nil when there is none.
func CommandJSON(c *probe.Command) *Command {
	if c == nil {
		return nil
	}
	shown := &Command{Args: shownArgs(*c), Dir: c.Dir}
	for _, v := range c.Env {
		shown.Env = append(shown.Env, headerJSON(v))
	}
	return shown
}

// cut stands where a secret was.
const cut = "…"

// shownArgs returns the arguments of a command without what looks like a secret: the values of its secret variables, keys
// in URLs, and what follows a flag that is named like a secret.
func shownArgs(c probe.Command) []string {
	secrets := probe.NewRedactor(probe.Target{Headers: c.Env, Command: &c})
	shown := make([]string, 0, len(c.Args))
	next := false // the argument is the value of a flag that is named like a secret
	for i, arg := range c.Args {
		name, _, assigned := strings.Cut(arg, "=")
		secret := i > 0 && secretFlag(name)
		switch {
		case i > 0 && next && !strings.HasPrefix(arg, "-"):
			arg = cut
		case secret && assigned:
			arg = name + "=" + cut
		case isURL(arg):
			arg = probe.RedactURL(arg)
		}
		next = secret && !assigned && strings.HasPrefix(name, "-")
		shown = append(shown, secrets.Cut(arg))
	}
	return shown
}

// secretFlag reports whether the name of a flag or variable is that of a secret.
func secretFlag(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "token", "secret", "password", "passwd", "pass", "auth", "credential", "pat", "bearer", "header"} {
		if slices.Contains(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }), word) {
			return true
		}
	}
	return strings.Contains(name, "apikey") || strings.Contains(name, "accesskey") || strings.Contains(name, "token")
}

func isURL(arg string) bool {
	u, err := url.Parse(arg)
	return err == nil && u.Scheme != "" && u.Host != ""
}

// AddressOf is where an endpoint is, as people are shown it: its URL or its command, secrets cut out.
func AddressOf(e store.Endpoint) string {
	if e.URL == "" && e.Command != nil {
		return strings.Join(shownArgs(*e.Command), " ")
	}
	return probe.RedactURL(e.URL)
}

// commandInput is a command that somebody wants an endpoint to be. Nil members leave what there is.
type commandInput struct {
	Removed bool
	Args    *[]string // those shown mean those kept
	Env     *[]headerInput
	Dir     *string
}

func readCommand(m *members) *commandInput {
	inner, removed := m.object("command")
	if inner == nil {
		return nil
	}
	in := &commandInput{
		Removed: removed, Args: inner.texts("args"), Env: readHeaders(inner, "env"), Dir: inner.text("dir", ""),
	}
	inner.rest()
	return in
}

// onto returns the command with what in names, and every mistake met.
func (in *commandInput) onto(c *probe.Command) (*probe.Command, []probe.Problem) {
	if in == nil {
		return c, nil
	}
	if in.Removed {
		return nil, nil
	}
	var mistakes []probe.Problem
	next := probe.Command{}
	if c != nil {
		next = *c
	}
	switch {
	case in.Args == nil, c != nil && slices.Equal(*in.Args, shownArgs(*c)):
	case slices.ContainsFunc(*in.Args, func(arg string) bool { return strings.Contains(arg, cut) }):
		mistakes = append(mistakes, probe.Problem{Field: "command.args", Message: "has a … where a secret was cut out: write all of it"})
	default:
		next.Args = *in.Args
	}
	if in.Env != nil {
		env, problems := mergeHeaders("command.env", next.Env, *in.Env, false)
		next.Env, mistakes = env, append(mistakes, problems...)
	}
	set(&next.Dir, in.Dir)
	return &next, mistakes
}

// What belongs to the person who runs the service.
const (
	onlyOperatorCommand = "only the person who runs the service can set a command: rollcall endpoints add --command …"
	onlyOperatorSocket  = "only the person who runs the service can watch a unix socket: rollcall endpoints add unix:///…"
	onlyOperatorAsks    = "only the person who runs the service can change what a local process or socket is asked: rollcall endpoints apply"
)

// localMistakes returns what somebody who is not at the machine wants to change and must not: which program runs on it,
// which socket of it is opened, and what is asked there. A request to a local server can do what the server can.
func (s *Server) localMistakes(before, after store.Endpoint) []probe.Problem {
	if s.local {
		return nil
	}
	if !reflect.DeepEqual(before.Command, after.Command) {
		return []probe.Problem{{Field: "command", Message: onlyOperatorCommand}}
	}
	if isSocket(after.URL) && before.URL != after.URL {
		return []probe.Problem{{Field: "url", Message: onlyOperatorSocket}}
	}
	if before.Command == nil && !isSocket(before.URL) {
		return nil
	}
	var mistakes []probe.Problem
	for _, c := range []struct {
		field string
		same  bool
	}{
		{"url", before.URL == after.URL},
		{"kind", before.Kind == after.Kind},
		{"headers", reflect.DeepEqual(before.Headers, after.Headers) || len(before.Headers)+len(after.Headers) == 0},
		{"request", reflect.DeepEqual(before.Request, after.Request) && reflect.DeepEqual(before.Options, after.Options)},
	} {
		if !c.same {
			mistakes = append(mistakes, probe.Problem{Field: c.field, Message: onlyOperatorAsks})
		}
	}
	return mistakes
}

func isSocket(raw string) bool {
	scheme, _, _ := strings.Cut(raw, ":")
	return strings.EqualFold(strings.TrimSpace(scheme), "unix")
}

func indexed(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }
