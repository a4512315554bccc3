package web

import (
	"html/template"
	"io"
	"testing"

	"golang.org/x/text/language"
)

// What tests of the words and numbers on the pages need to see.
var (
	English = english
	Grouped = grouped
	Machine = machine
	TagOf   = tagOf
	Means   = english.means
	Advice  = english.advice
)

// WordedClasses is how many classes have words of their own.
func WordedClasses() int { return len(meanings) }

// MarkBegin and MarkEnd stand around every sentence of the catalogue in a page of RenderMarked.
const (
	MarkBegin = '⟦'
	MarkEnd   = '⟧'
)

// Sentences are all that pages say, by their English.
func Sentences(t *testing.T) map[string]string {
	t.Helper()
	all := sentencesOf(t)
	for _, c := range catalogues {
		for key := range c.Sentences {
			all[key] = "languages"
		}
	}
	return all
}

// RenderMarked writes page in a language that says everything in English, between marks.
func RenderMarked(t *testing.T, w io.Writer, page Page) error {
	t.Helper()
	if markedPages == nil {
		c := catalogue{Tag: language.Make("en-XA"), Sentences: map[string]sentence{}}
		for key := range Sentences(t) {
			c.Sentences[key] = sentence{text: string(MarkBegin) + key + string(MarkEnd)}
		}
		markedPages = parse(speakAll([]catalogue{catalogues[0], c})[1])
	}
	return markedPages[page.template()].ExecuteTemplate(w, page.layout(), page)
}

// markedPages are the templates of RenderMarked once they were asked for.
var markedPages map[string]*template.Template
