package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	plurals "golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
	"golang.org/x/text/number"

	"github.com/rollcallhq/rollcall/probe"
)

// Said is a sentence that is made in Go and put into the reader's language by the template that shows it. Key is the English
// sentence, with verbs of package fmt for Args.
type Said struct {
	Key  string
	Args []any
}

// Say returns a sentence with its arguments.
func Say(key string, args ...any) Said { return Said{key, args} }

// Empty reports whether there is nothing to say.
func (s Said) Empty() bool { return s.Key == "" }

// Language is a language that the pages can be read in: one file in languages/.
type Language struct {
	Tag     string // BCP 47, such as "en" or "pt-BR": what Frame.Language holds
	Name    string // in the language itself
	printer *message.Printer
	// sentences and forms are what words recognises, none in English; the forms are made when they are first asked for.
	sentences map[string]sentence
	forms     func() []form
	failures  *failures
	dates     dates
	separator string // between a whole number and its decimals
}

// catalogue is the file of a language. Sentences are by their English: a text, or the forms of a sentence by the plural category
// of its first argument ("one", "few", "other", … as in CLDR). Of English, only what has plurals needs to be there.
type catalogue struct {
	Tag       language.Tag        `json:"tag"`
	Name      string              `json:"name"`
	Sentences map[string]sentence `json:"sentences"`
	// Failures are by the formats of the messages of package probe, see heard. The catalogue of English has none.
	Failures map[string]string `json:"failures"`
	Dates    dates             `json:"dates"`
}

// sentence is one text, or several by plural category.
type sentence struct {
	text  string
	forms map[string]string
}

func (s *sentence) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		return json.Unmarshal(data, &s.forms)
	}
	return json.Unmarshal(data, &s.text)
}

// message returns s as the catalogue of package message takes it.
func (s sentence) message() catalog.Message {
	if s.forms == nil {
		return catalog.String(s.text)
	}
	var cases []any
	for _, category := range []string{"zero", "one", "two", "few", "many", "other"} {
		if form, ok := s.forms[category]; ok {
			cases = append(cases, category, form)
		}
	}
	return plurals.Selectf(1, "%d", cases...)
}

// catalogues are the files of languages/, English first and the rest by name.
var catalogues = readCatalogues()

// languages are what can be read, in the order of catalogues.
var languages = speakAll(catalogues)

// english is what is said where no reader is known.
var english = languages[0]

// matcher finds the best of languages for what a browser asks for.
var matcher = language.NewMatcher(tagsOf(catalogues))

// readCatalogues panics when a file is wrong: the files are part of the program.
func readCatalogues() []catalogue {
	names, err := fs.Glob(files, "languages/*.json")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	all := make([]catalogue, 0, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		var c catalogue
		if err := json.Unmarshal(data, &c); err != nil {
			panic(fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b catalogue) int {
		return cmp.Or(compareBool(a.Tag != language.English, b.Tag != language.English), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func speakAll(all []catalogue) []Language {
	builder := catalog.NewBuilder(catalog.Fallback(language.English))
	for _, c := range all {
		for key, s := range c.Sentences {
			if err := builder.Set(c.Tag, key, s.message()); err != nil {
				panic(fmt.Errorf("%s: %q: %w", c.Tag, key, err))
			}
		}
	}
	spoken := make([]Language, 0, len(all))
	for _, c := range all {
		l := Language{Tag: c.Tag.String(), Name: c.Name, printer: message.NewPrinter(c.Tag, message.Catalog(builder)), dates: c.Dates, failures: failuresOf(c, all)}
		l.separator = strings.Trim(l.printer.Sprint(number.Decimal(0.5)), "05")
		if c.Tag != language.English {
			l.sentences, l.forms = c.Sentences, sync.OnceValue(func() []form { return formsOf(c, all[0]) })
		}
		spoken = append(spoken, l)
	}
	return spoken
}

func tagsOf(all []catalogue) []language.Tag {
	tags := make([]language.Tag, 0, len(all))
	for _, c := range all {
		tags = append(tags, c.Tag)
	}
	return tags
}

// Languages returns the languages that pages can be read in, English first.
func Languages() []Language { return slices.Clone(languages) }

// ChooseLanguage returns the tag of the language for somebody who has chosen one, or, where that is none of ours, whose browser
// sent such an Accept-Language header. Both are a stranger's bytes.
func ChooseLanguage(chosen, accepted string) string {
	for _, l := range languages {
		if l.Tag == chosen {
			return l.Tag
		}
	}
	const most = 200 // bytes: more than any browser sends
	if len(accepted) > most {
		accepted = ""
	}
	_, i := language.MatchStrings(matcher, accepted)
	return languages[i].Tag
}

// languageOf returns a language by its tag, English where there is no such one.
func languageOf(tag string) Language {
	if i := slices.IndexFunc(languages, func(l Language) bool { return l.Tag == tag }); i >= 0 {
		return languages[i]
	}
	return languages[0]
}

// say puts an English sentence into the language. An argument that points to something stands for it: optional numbers do.
func (l Language) say(key string, args ...any) string {
	said := slices.Clone(args)
	for i, arg := range said {
		said[i] = l.argument(arg)
	}
	return l.printer.Sprintf(key, said...)
}

// argument returns what stands in a sentence for an argument: of what is Spoken, of a duration and of a moment, the words for it.
func (l Language) argument(arg any) any {
	switch a := arg.(type) {
	case Spoken:
		return a.in(l)
	case time.Duration:
		return l.lasting(a)
	case time.Time:
		return l.stamp(a)
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.Pointer && !v.IsNil() {
		return v.Elem().Interface()
	}
	return arg
}

// functions are what templates may call that depends on the language.
func (l Language) functions() template.FuncMap {
	return template.FuncMap{
		"t":         l.say,
		"say":       func(s Spoken) string { return s.in(l) },
		"words":     l.words,
		"heard":     l.heard,
		"language":  func() string { return l.Tag },
		"script":    l.script,
		"stamp":     l.stamp,
		"day":       l.day,
		"date":      l.date,
		"ago":       l.ago,
		"agoMark":   l.agoMark,
		"until":     l.until,
		"lasting":   l.lasting,
		"latency":   l.latency,
		"ms":        l.milliseconds,
		"decimal":   l.decimal,
		"percent":   l.percent,
		"coverage":  l.coverage,
		"size":      l.size,
		"yesNo":     l.yesNo,
		"statusTag": l.tagOf,
		"kindWords": func(k probe.Kind) string { return l.say(kindWords(k)) },
		"means":     l.means,
		"advice":    l.advice,
		"hourBar":   l.hourBar,
		"sparkline": l.sparkline,
	}
}
