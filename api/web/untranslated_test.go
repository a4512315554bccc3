package web_test

import (
	"bytes"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/rollcallhq/rollcall/api/web"
)

// Every page is rendered in a language that says the English between marks. What can be read outside of them, and is no text of the
// sample, is a sentence that no reader of another language would understand.
func TestNoPageHasWordsOutsideOfTheCatalogue(t *testing.T) {
	keys := web.Sentences(t)
	delete(keys, "Database upgrade") // an example, and what a sample is called
	for _, name := range slices.Sorted(maps.Keys(samples())) {
		page := samples()[name]
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := web.RenderMarked(t, &b, page); err != nil {
				t.Fatal(err)
			}
			texts := map[string]bool{}
			textsOf(reflect.ValueOf(page), texts)
			known := slices.DeleteFunc(slices.Collect(maps.Keys(texts)), func(text string) bool { return keys[text] != "" })
			slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
			var sentences []string // of the sample, before addresses in them are cut out
			for _, text := range known {
				if strings.Contains(text, " ") {
					sentences = append(sentences, text)
				}
			}
			for _, left := range visible(t, b.String()) {
				rest := without(address.ReplaceAllString(without(outside(left), sentences), " "), known)
				for _, word := range wordy.FindAllString(rest, -1) {
					if !sameEverywhere[word] {
						t.Errorf("%q stands in %q", word, clip(left))
						break
					}
				}
			}
		})
	}
}

// address is one of a host, a mailbox or a page.
var address = regexp.MustCompile(`[\w-]*(?:[./@:]+[\w-]+)+`)

// without returns a text without others, where they stand in it as words.
func without(text string, others []string) string {
	for _, other := range others {
		for at := 0; ; {
			i := strings.Index(text[at:], other)
			if i < 0 {
				break
			}
			at += i
			before, _ := utf8.DecodeLastRuneInString(text[:at])
			after, _ := utf8.DecodeRuneInString(text[at+len(other):])
			if !unicode.IsLetter(before) && !unicode.IsLetter(after) {
				text = text[:at] + " " + text[at+len(other):]
			}
			at++
		}
	}
	return text
}

// wordy is a word of a language rather than a unit, an abbreviation or a name in capitals.
var wordy = regexp.MustCompile(`\pL*\p{Ll}\pL*\pL{2,}\pL*`)

// sameEverywhere are names that no language translates, and what examples are made of.
var sameEverywhere = map[string]bool{
	"Rollcall": true, "English": true, "Deutsch": true, "OAuth": true, "JSONPath": true, "Atom": true, "cron": true,
	"prod": true, "payments": true, "fra": true, "ams": true, "ops": true, "availability": true,
}

// visible are the texts of a page that people read or hear.
func visible(t *testing.T, body string) []string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			texts = append(texts, n.Data)
		}
		if n.Type == html.ElementNode {
			if attr(n, "dir") == "ltr" || slices.Contains([]string{"code", "pre", "q", "textarea", "script", "style", "bdi"}, n.Data) {
				return
			}
			for _, key := range []string{"title", "aria-label", "alt", "data-ok"} {
				texts = append(texts, attr(n, key))
			}
			if placeholder := attr(n, "placeholder"); !strings.Contains(attr(n, "class"), "mono") {
				texts = append(texts, placeholder)
			}
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(root)
	return texts
}

// outside is what of a text stands outside of the marks, which may stand within each other.
func outside(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == web.MarkBegin:
			depth++
		case r == web.MarkEnd:
			depth--
			b.WriteByte(' ')
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// textsOf collects the texts in a value.
func textsOf(v reflect.Value, texts map[string]bool) {
	switch v.Kind() {
	case reflect.String:
		if v.String() != "" {
			texts[v.String()] = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			textsOf(v.Field(i), texts)
		}
	case reflect.Slice:
		for i := range v.Len() {
			textsOf(v.Index(i), texts)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			textsOf(key, texts)
			textsOf(v.MapIndex(key), texts)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			textsOf(v.Elem(), texts)
		}
	}
}
