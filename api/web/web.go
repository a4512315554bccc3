// Package web turns what a page shows into HTML. It takes one struct per page, made for that page by package api,
// escapes everything in it, and knows neither requests nor databases. Every page reads and works without JavaScript;
// the small modules in static/ only make it more comfortable.
package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

//go:embed templates static languages
var files embed.FS

// Page is something Render can render: one of the page structs of this package.
type Page interface {
	// template is the name of the page's file in templates/, without its ending.
	template() string
	// language is the tag of the language that it is read in; see Frame.
	language() string
	// layout is the name of the template that stands around the page.
	layout() string
}

// Frame is what stands around every page.
type Frame struct {
	User    string     // name of who is logged in; empty for a visitor
	Role    store.Role // of who is logged in; empty for a visitor
	Section string     // address of the navigation entry that is current, such as "/incidents"
	Done    string     // what the visitor has just done, in words; empty for nothing
	Now     time.Time  // to which every "ago" on the page refers
	Version string
	// Language is the tag of the language that the page is read in; empty: English. See ChooseLanguage.
	Language string
	Theme    string // ThemeLight, ThemeDark, or empty: the system's
	Here     string // address of the page within this service
	// Site is the status page that the page belongs to; nil on the built-in one and wherever the team works.
	Site *Site
}

// May reports whether who looks may do what takes a role: pages leave out what they may not. The server is what refuses.
func (f Frame) May(role store.Role) bool { return f.Role.May(role) }

func (f Frame) language() string { return f.Language }

// layout is the name of the template that stands around the page.
func (f Frame) layout() string {
	if f.Site != nil {
		return "site"
	}
	return "layout"
}

// Render writes page as a whole HTML document. Nothing is written when the page cannot be rendered.
func Render(w io.Writer, page Page) error {
	t, ok := templates[languageOf(page.language()).Tag]()[page.template()]
	if !ok {
		return fmt.Errorf("render page: no template %q", page.template())
	}
	var buf bytes.Buffer
	if err := t.ExecuteTemplate(&buf, page.layout(), page); err != nil {
		return fmt.Errorf("render page %q: %w", page.template(), err)
	}
	if _, err := buf.WriteTo(w); err != nil {
		return fmt.Errorf("write page %q: %w", page.template(), err)
	}
	return nil
}

// templates are the pages by language and name, each a layout with the page's own "title" and "main" in it. They are parsed when
// somebody reads in that language first: most commands never show a page.
var templates = parseAll()

func parseAll() map[string]func() map[string]*template.Template {
	all := make(map[string]func() map[string]*template.Template, len(languages))
	for _, l := range languages {
		all[l.Tag] = sync.OnceValue(func() map[string]*template.Template { return parse(l) })
	}
	return all
}

// parse panics when a template is wrong: the files are part of the program.
func parse(l Language) map[string]*template.Template {
	shared := template.New("").Funcs(functions).Funcs(l.functions())
	shared.Funcs(template.FuncMap{"statusMark": statusMarks(shared)})
	template.Must(shared.ParseFS(files, "templates/shared/*.html"))
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	pages := make(map[string]*template.Template, len(names))
	for _, name := range names {
		t := template.Must(template.Must(shared.Clone()).ParseFS(files, name))
		pages[strings.TrimSuffix(path.Base(name), ".html")] = t
	}
	return pages
}

// statusMarks returns what the template "status" makes of a status, which it is asked for but once: a long list has the same few marks
// on every row.
func statusMarks(shared *template.Template) func(store.Status) (template.HTML, error) {
	var known sync.Map // template.HTML by tone
	return func(s store.Status) (template.HTML, error) {
		tone := tagOf(s).Tone
		if mark, there := known.Load(tone); there {
			return mark.(template.HTML), nil //nolint:forcetypeassert // nothing else is put there
		}
		var b strings.Builder
		if err := shared.ExecuteTemplate(&b, "status", s); err != nil {
			return "", err
		}
		mark := template.HTML(b.String()) //nolint:gosec // a template made it
		known.Store(tone, mark)
		return mark, nil
	}
}

// functions are what templates may call beside the methods of what they are given.
var functions = template.FuncMap{
	"asset":    asset,
	"machine":  machine,
	"changed":  changed,
	"grouped":  grouped,
	"rankTone": rankTone,
	"nameOf":   probe.ChainName,
	"fieldID":  FieldID,
	"asOf":     asOf,
	"halves":   halves,
	"list":     func(s ...string) []string { return s },
	"dict":     dict,
	"after":    func(i int) int { return i + 1 }, // people count from one
	"unquoted": unquoted,
}

// dated hands a part of a page to a template of its own together with the page's time.
type dated struct {
	Now time.Time
	Of  any
}

func asOf(now time.Time, part any) dated { return dated{now, part} }

// halves returns what stands before and after the object replacement character (U+FFFC) in a sentence: the place of something that
// is an element of its own, wherever a language puts it.
func halves(sentence string) []string {
	before, after, _ := strings.Cut(sentence, "\ufffc")
	return []string{before, after}
}
