package web

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

func TestWhatIsOursAndWhatTheEndpointSaid(t *testing.T) {
	for _, test := range []struct {
		class   probe.Class
		message string
		en, de  Heard
	}{
		{probe.ClassHeadBehind, "30 blocks (6 min) behind Eth 18481 and others",
			Heard{Concluded: "30 blocks (6 min) behind Eth 18481 and others"}, Heard{Concluded: "30 Blöcke (6 Min.) hinter Eth 18481 und anderen"}},
		{probe.ClassHeadBehind, "30 slots (6m) behind its peers",
			Heard{Concluded: "30 slots (6 min) behind its peers"}, Heard{Concluded: "30 Slots (6 Min.) hinter den anderen"}},
		{probe.ClassTimeout, "no first byte after 2.7 s",
			Heard{Concluded: "no first byte after 2.7 s"}, Heard{Concluded: "nach 2,7 s kein erstes Byte"}},
		{probe.ClassTimeout, "no first byte after 2.7s",
			Heard{Concluded: "no first byte after 2.7 s"}, Heard{Concluded: "nach 2,7 s kein erstes Byte"}},
		{probe.ClassHeadLagging, "the newest block, 897667013, is 1 h 1 s old, more than 1 h; a chain that makes blocks on demand needs a max_age below zero",
			Heard{Concluded: "the newest block, 897667013, is 1 h 1 s old, more than 1 h; a chain that makes blocks on demand needs a max_age below zero"},
			Heard{Concluded: "der neueste Block, 897667013, ist 1 Std. 1 s alt, mehr als 1 Std.; eine Chain, die Blöcke nur bei Bedarf macht, braucht ein max_age unter null"}},
		{probe.ClassHeadLagging, "the newest block, 897667013, is 1h0m1s old, more than 1h; a chain that makes blocks on demand needs a max_age below zero",
			Heard{Concluded: "the newest block, 897667013, is 1 h old, more than 1 h; a chain that makes blocks on demand needs a max_age below zero"},
			Heard{Concluded: "der neueste Block, 897667013, ist 1 Std. alt, mehr als 1 Std.; eine Chain, die Blöcke nur bei Bedarf macht, braucht ein max_age unter null"}},
		{probe.ClassTimeout, "seen from fra only (1 of 3 locations): no connection after 4 s",
			Heard{Concluded: "seen from fra only (1 of 3 locations): no connection after 4 s"}, Heard{Concluded: "nur von fra aus gesehen (1 von 3 Standorten): nach 4 s keine Verbindung"}},
		{probe.ClassContentType, "answered with text/html in place of JSON-RPC: Please log in",
			Heard{"answered with text/html in place of JSON-RPC", "Please log in"}, Heard{"antwortet mit text/html statt mit JSON-RPC", "Please log in"}},
		{probe.ClassContentType, "answered with text/html in place of JSON-RPC",
			Heard{Concluded: "answered with text/html in place of JSON-RPC"}, Heard{Concluded: "antwortet mit text/html statt mit JSON-RPC"}},
		{probe.ClassHTTPStatus, "404 Not Found (nothing at this path)",
			Heard{Concluded: "404 Not Found (nothing at this path)"}, Heard{Concluded: "404 Not Found (nichts unter diesem Pfad)"}},
		{probe.ClassHTTPStatus, "503 Service Unavailable: upstream connect error (overloaded, or the gateway has no server to ask)",
			Heard{Concluded: "503 Service Unavailable: “upstream connect error” (overloaded, or the gateway has no server to ask)"},
			Heard{Concluded: "503 Service Unavailable: „upstream connect error“ (überlastet, oder das Gateway hat keinen Server, den es fragen kann)"}},
		{probe.ClassRateLimited, "429 Too Many Requests: slow down", Heard{"429 Too Many Requests", "slow down"}, Heard{"429 Too Many Requests", "slow down"}},
		{probe.ClassHTTPStatus, "404 page not found", Heard{Said: "404 page not found"}, Heard{Said: "404 page not found"}},
		{probe.ClassTimeout, "no answer after 4 s; on its standard error: is x, expected y",
			Heard{"no answer after 4 s; on its standard error", "is x, expected y"}, Heard{"nach 4 s keine Antwort; in seiner Standardfehlerausgabe", "is x, expected y"}},
		{probe.ClassTLSExpiring, "the certificate ends in 9 days (2026-12-01)",
			Heard{Concluded: "the certificate ends in 9 days (2026-12-01)"}, Heard{Concluded: "das Zertifikat läuft in 9 Tagen ab (2026-12-01)"}},
		// what the endpoint says stays its own, also where it reads like a short sentence of ours
		{probe.ClassRPCError, "Internal error: database is locked", Heard{Said: "Internal error: database is locked"}, Heard{Said: "Internal error: database is locked"}},
		{probe.ClassRPCError, "quota is 0, expected 5", Heard{Said: "quota is 0, expected 5"}, Heard{Said: "quota is 0, expected 5"}},
		{probe.ClassAssertionFailed, `$.n is 0, expected 5`, Heard{Concluded: "$.n is 0, expected 5"}, Heard{Concluded: "$.n ist 0, erwartet war 5"}},
		{probe.ClassToolError, "weather service unreachable", Heard{Said: "weather service unreachable"}, Heard{Said: "weather service unreachable"}},
		// somebody who imitates us is read as we are: their own words are pieces of it, which templates escape
		{probe.ClassRPCError, "the newest block, 1, is <b>5 %s old</b> old, more than %!d",
			Heard{Concluded: "the newest block, 1, is <b>5 %s old</b> old, more than %!d"}, Heard{Concluded: "der neueste Block, 1, ist <b>5 %s old</b> alt, mehr als %!d"}},
		{probe.ClassConnect, strings.Repeat("x", maxRecognised+1), Heard{Said: strings.Repeat("x", maxRecognised+1)}, Heard{Said: strings.Repeat("x", maxRecognised+1)}},
		{probe.ClassConnect, "", Heard{}, Heard{}},
	} {
		for tag, want := range map[string]Heard{"en": test.en, "de": test.de} {
			if diff := cmp.Diff(want, languageOf(tag).heard(test.class, test.message)); diff != "" {
				t.Errorf("%s: %q (-want +got):\n%s", tag, test.message, diff)
			}
		}
	}
}

// Each message that package probe makes is known to every language, so that it is neither left in English nor taken for the endpoint's.
func TestEveryCatalogueHasTheMessagesOfProbe(t *testing.T) {
	all := failureFormats(t)
	if len(all) < 250 {
		t.Fatalf("read only %d formats of messages", len(all))
	}
	for _, c := range catalogues[1:] {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if _, mistake := c.Sentences[key]; mistake && len(made[key]) == 0 || c.Failures[key] != "" || c.Failures["%s"+key] != "" {
				continue
			}
			for _, one := range made[key] {
				if c.Failures[one] == "" {
					t.Errorf("%s: no sentence for the failure %q, which %q becomes", c.Tag, one, key)
				}
			}
			if len(made[key]) == 0 {
				t.Errorf("%s: no sentence for the failure %q", c.Tag, key)
			}
		}
	}
}

// made are the sentences that become of formats which say too little for themselves to be recognised by.
var made = map[string][]string{
	"%s after %s": {
		"nothing could be sent after %s", "host name not resolved after %s", "no connection after %s", "TLS handshake not finished after %s",
		"request not taken after %s", "no first byte after %s", "answer not complete after %s", "WebSocket handshake not answered after %s",
	},
	"%d %s%s behind %s": {"%d %s (%s) behind %s", "%d %s behind %s"},
	"%s answered %s%s":  {"the token endpoint %s answered %s%s"},
	"%s are for whoever runs this service to set up: they are refused here": {
		"unix sockets are for whoever runs this service to set up: they are refused here",
		"commands are for whoever runs this service to set up: they are refused here",
	},
	"%s ends in %s (%s)": {"the certificate ends in %s (%s)", "the certificate of %s, which vouches for that of the server, ends in %s (%s)"},
	"%s has %s":          {"%s has no IPv%s address"},
	"%s is %s":           {"%s is not a number: %s", "%s is not a time: %s", "%s is not text: %s", "%s is larger than 64 bits"},
	"%s on standard output, the first: %s": {
		"%d lines that are no messages on standard output, the first: %s", "1 line that is no message on standard output, the first: %s",
	},
	`%s, must be "2.0"`: {`no jsonrpc member, must be "2.0"`, `jsonrpc is %s, must be "2.0"`},
	"all %d endpoints of the chain stand still at %d%s": {
		"all %d endpoints of the chain stand still at %d", "all %d endpoints of the chain stand still at %d, which is %s old",
	},
	"and asked for %s more, which the check does not have": {"the event stream ended without an answer, and asked for %s more, which the check does not have"},
	"and could not be taken up again%s":                    {"the event stream ended without an answer, and could not be taken up again%s"},
	"the event stream ended without an answer, %s":         {"the event stream ended without an answer"},
	"asked with id %q, answered with %s%s":                 {"asked with id %q, answered with %s", "asked with id %q, answered with %s and error %d%s"},
	"no new %s for %s, still at %d%s%s": {
		"no new %s for %s, still at %d", "no new %s for %s, still at %d, which is %s old", "%s; a chain that makes %ss on demand needs a max_age below zero",
	},
	"the newest %s, %d, is %s%s": {"the newest %s, %d, is %s old, more than %s"},
	"the endpoint event %s": {
		"the endpoint event holds %d bytes, which are no URL", "the endpoint event holds what cannot be read as a URL",
		"the endpoint event names an address with a user name at %s", "the endpoint event leads to another origin, %s: clients must not post there",
	},
	"paste PEM, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----%s": {"exit code %d", "exit code %d: %s", "killed by %s", "killed by %s: %s"}, // of another constant
}

// sinks are the functions that are handed the format of a message.
var sinks = []string{
	"failPlain", "flag", "warn", "fail", "failWith", "found", "warning", "notJSON", "notRPC", "note", "framingProblem", "authServerProblem",
	"undiscovered", "proxyProblem", "noResponse", "refuse", "warnHere", "connect", "words",
}

// failureFormats returns the formats of the messages of package probe: what its functions that make failures and warnings are handed,
// and what is written into the message of one.
func failureFormats(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	s := sourceOf(t, "../../probe")
	add := func(before string, e ast.Expr) {
		if text, ok := s.text(e); ok && strings.Contains(text, " ") && strings.Trim(text, "%sd :;") != "" {
			all[before+strings.ReplaceAll(text, "%w", "%s")] = true
		}
	}
	s.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if slices.Contains(sinks, calledName(n)) {
				for _, arg := range n.Args {
					add("", arg)
				}
			}
		case *ast.CompositeLit:
			kind, _ := n.Type.(*ast.Ident)
			if kind == nil || !slices.Contains([]string{"problem", "Failure", "finding", "Warning"}, kind.Name) {
				return
			}
			for i, e := range n.Elts {
				kv, keyed := e.(*ast.KeyValueExpr)
				if keyed {
					if key, ok := kv.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "message") {
						add("", kv.Value)
					}
				} else if i == 2 {
					add("", e)
				}
			}
		case *ast.AssignStmt:
			if left, ok := n.Lhs[0].(*ast.SelectorExpr); ok && strings.EqualFold(left.Sel.Name, "message") {
				if n.Tok == token.ADD_ASSIGN {
					add("%s", n.Rhs[0])
				} else {
					add("", n.Rhs[0])
				}
			}
		}
	})
	return all
}

// presetNotes returns what the presets of chains say of their findings.
func presetNotes(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("../../probe/presets/*.json")
	if err != nil || len(names) == 0 {
		t.Fatal("no presets", err)
	}
	var all strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return strings.ToLower(all.String())
}

func TestFailuresOfAllLanguagesTakeTheSameArgumentsAndAreRecognised(t *testing.T) {
	values := map[string]string{"d": "12", "q": `"ab cd"`, "s": "foo"}
	for _, c := range catalogues[1:] {
		for key, text := range c.Failures {
			want := arguments(key)
			if got := arguments(text); text == "" || len(got) != len(want) {
				t.Errorf("%s: %q takes %d arguments, %q %d", c.Tag, text, len(got), key, len(want))
				continue
			}
			english, german := key, text
			for _, verb := range want {
				if values[verb] == "" {
					t.Errorf("%s: %q has a %%%s, which pieces are not written by", c.Tag, key, verb)
				}
				english = strings.Replace(english, "%"+verb, values[verb], 1)
			}
			h := languageOf(c.Tag.String()).heard(probe.ClassConnect, english)
			if h.Concluded == "" || strings.Contains(h.Concluded, "%!") || h.Concluded == english && german != key {
				t.Errorf("%s: %q is read as %+v", c.Tag, english, h)
			}
		}
	}
}

func TestNoCatalogueHasFailuresThatNothingSays(t *testing.T) {
	literals := literalsOf(t) + presetNotes(t)
	for _, c := range catalogues {
		for key := range c.Failures {
			for word := range strings.FieldsFuncSeq(strings.ToLower(verb.ReplaceAllString(key, " ")), func(r rune) bool { return !unicode.IsLetter(r) }) {
				if !strings.Contains(literals, strings.TrimSuffix(word, "s")) {
					t.Errorf("%s: nothing says %q in the failure %q", c.Tag, word, key)
				}
			}
		}
	}
}

func BenchmarkHeard(b *testing.B) {
	l := languageOf("de")
	for name, text := range map[string]string{"ours": "30 blocks (6 min) behind Eth 18481 and others", "theirs": "Internal error: database is locked"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l.read(probe.ClassHeadBehind, text)
			}
		})
		b.Run(name+" again", func(b *testing.B) {
			for b.Loop() {
				l.heard(probe.ClassHeadBehind, text)
			}
		})
	}
}

func TestACodeThatTheMessageBeginsWithIsNotSaidTwice(t *testing.T) {
	for message, want := range map[string]bool{
		"503 Service Unavailable: upstream connect error": true,
		"503 Service Unavailable":                         true,
		"5031 things are wrong":                           false,
		"no answer":                                       false,
		"":                                                false,
	} {
		if got := languageOf("en").heard(probe.ClassHTTPStatus, message).Begins(503); got != want {
			t.Errorf("%q begins with 503: %t, want %t", message, got, want)
		}
	}
}
