package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"reflect"

	"github.com/rollcallhq/rollcall/probe"
)

// maxOptions bounds the options and the command of an endpoint as JSON: a private CA, a client certificate and a batch of
// some size fit.
const maxOptions = 256 << 10

// settings are the options and the command of an endpoint as they are sealed.
type settings struct {
	Options probe.Options  `json:"options,omitzero"`
	Command *probe.Command `json:"command,omitempty"`
}

// SealOptions returns the options and the command of an endpoint as a database may keep them; nil when there are none.
// They are sealed whole: they hold client secrets and keys.
func (s *Sealer) SealOptions(e Endpoint) ([]byte, error) {
	if e.plain() {
		return nil, nil
	}
	text, err := e.settingsText()
	if err != nil {
		return nil, fmt.Errorf("write options of endpoint %s: %w", e.ID, err)
	}
	return s.Seal(text, optionsPlace(e.ID)), nil
}

// OpenOptions fills in what SealOptions was given. Its error is ErrWrongKey when the key is another one.
func (s *Sealer) OpenOptions(e *Endpoint, sealed []byte) error {
	var kept settings
	if err := s.openJSON(sealed, optionsPlace(e.ID), &kept); err != nil {
		return fmt.Errorf("options of endpoint %s: %w", e.ID, err)
	}
	e.Options, e.Command = kept.Options, kept.Command
	return nil
}

func optionsPlace(endpointID string) string { return "endpoint/" + endpointID + "/options" }

// plain reports whether e has neither options nor a command.
func (e Endpoint) plain() bool {
	return e.Command == nil && reflect.DeepEqual(e.Options, probe.Options{})
}

// settingsText returns the options and the command of e as JSON that leaves JSON inside of it as it is, but for white
// space.
func (e Endpoint) settingsText() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(settings{e.Options, e.Command}); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// withOwnSettings returns e with options and a command that share nothing with those it had, as every database gives them
// back. Its error is an Invalid.
func (e Endpoint) withOwnSettings() (Endpoint, error) {
	if e.plain() {
		e.Options, e.Command = probe.Options{}, nil
		return e, nil
	}
	text, err := e.settingsText()
	if err != nil {
		return e, Invalid{[]probe.Problem{problem("request", "holds something that is not JSON")}}
	}
	if len(text) > maxOptions {
		return e, Invalid{[]probe.Problem{problem("request", "together with the other options is larger than %d KiB", maxOptions>>10)}}
	}
	var own settings
	if err := json.Unmarshal(text, &own); err != nil {
		return e, Invalid{[]probe.Problem{problem("request", "holds something that cannot be kept")}}
	}
	e.Options, e.Command = own.Options, own.Command
	return e, nil
}

// optionsProblems returns what keeps the options and the command of e from being kept; what is wrong with them otherwise
// probe.Target.Validate says.
func (e Endpoint) optionsProblems() []probe.Problem {
	var invalid Invalid
	if _, err := e.withOwnSettings(); err != nil {
		invalid, _ = err.(Invalid) //nolint:errorlint // it is made there and not wrapped
	}
	return invalid.Problems
}

// DefaultName returns the name of an endpoint for which none was given: the host of its URL, the file of its socket, or the
// program of its command.
func (e Endpoint) DefaultName() string {
	if e.URL == "" && e.Command != nil && len(e.Command.Args) > 0 {
		name := CleanText(filepath.Base(e.Command.Args[0]))
		if Slugify(name) != "" {
			return clipRunes(name, maxName-4)
		}
	}
	if u, err := url.Parse(e.URL); err == nil && u.Scheme == "unix" && Slugify(path.Base(u.Path)) != "" {
		return clipRunes(CleanText(path.Base(u.Path)), maxName-4)
	}
	return NameFromURL(e.URL)
}

// asks reports whether e and o are asked the same question of the same place: what was found out about one holds for the
// other.
func (e Endpoint) asks(o Endpoint) bool {
	return e.Kind == o.Kind && e.URL == o.URL && e.Request.equal(o.Request) && reflect.DeepEqual(e.Command, o.Command) &&
		reflect.DeepEqual(e.Options.Batch, o.Options.Batch) && e.Options.Notify == o.Options.Notify &&
		e.Options.Subscribe == o.Options.Subscribe && e.Options.Framing == o.Options.Framing && e.Options.ACP == o.Options.ACP
}

// programText is what a search may find of a command: the program, and nothing of its arguments, which may hold keys.
func (e Endpoint) programText() string {
	if e.Command == nil || len(e.Command.Args) == 0 {
		return ""
	}
	return "\n" + filepath.Base(e.Command.Args[0])
}

// commandTexts are the texts of a command, by the names they go by in JSON.
func commandTexts(c *probe.Command) map[string]string {
	texts := map[string]string{}
	if c == nil {
		return texts
	}
	texts["command.dir"] = c.Dir
	for i, arg := range c.Args {
		texts[fmt.Sprintf("command.args[%d]", i)] = arg
	}
	for i, v := range c.Env {
		texts[fmt.Sprintf("command.env[%d].name", i)] = v.Name
		texts[fmt.Sprintf("command.env[%d].value", i)] = v.Value
	}
	return texts
}
