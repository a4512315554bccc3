package web

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Much of what pages and the REST interface both say is made far from here, as plain English: what is wrong with an input, why
// something was refused. A page recognises such a sentence by the format that it was made from, which is a key of the catalogue:
//
//	"is longer than 200 characters"  is  "is longer than %d characters"  with 200
//
// and says the translation with the same pieces. Whatever is not recognised stays English. So a stranger's text that happens to be
// in a sentence, or is one, can at most be read as one of our own sentences with pieces of itself in it.

// form is an English format that sentences are recognised by.
type form struct {
	key      string                // in the catalogue
	literals []string              // the texts around the pieces, in their order, which sort out most sentences cheaply
	shape    func() *regexp.Regexp // made when it is first asked for
	args     []int                 // of each piece that shape captures, from 0
	literal  int                   // bytes of literal text: the more, the surer
}

const (
	maxRecognised = 2000 // bytes of a sentence: more than any of ours has
	minLiteral    = 5    // letters without which a format fits nearly everything
)

// verb is one of package fmt in a format: "%d", "%.40q", "%[2]s".
var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(?:\.[0-9]+)?(?:\[([0-9]+)\])?([a-zA-Z%])`)

// pieceShapes are what the verbs write. What is not in the list may be anything.
var pieceShapes = map[string]string{
	"d": `(-?[0-9]+)`,
	"f": `(-?[0-9]+(?:\.[0-9]+)?)`,
	"g": `(-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)`,
	"q": `("(?:[^"\\]|\\.)*"|` + "`[^`]*`)",
	"t": `(true|false)`,
	"x": `([0-9a-fA-F]+)`,
}

// formOf returns the form of a format; false where it has no verbs, or too few words of its own.
func formOf(key, format string) (form, bool) {
	f := form{key: key}
	var shape strings.Builder
	shape.WriteString(`\A(?s:`)
	end, next, letters, percent := 0, 0, 0, false
	literal := func(text string) {
		f.literals = append(f.literals, text)
		shape.WriteString(regexp.QuoteMeta(text))
		f.literal += len(text)
		for _, r := range text {
			if unicode.IsLetter(r) {
				letters++
			}
		}
	}
	for _, at := range verb.FindAllStringSubmatchIndex(format, -1) {
		literal(format[end:at[0]])
		end = at[1]
		kind := format[at[4]:at[5]]
		if kind == "%" {
			percent = true
			literal("%")
			continue
		}
		if at[2] >= 0 {
			n, err := strconv.Atoi(format[at[2]:at[3]])
			if err != nil || n < 1 {
				return form{}, false
			}
			next = n - 1
		}
		f.args = append(f.args, next)
		next++
		if piece, ok := pieceShapes[kind]; ok {
			shape.WriteString(piece)
		} else {
			shape.WriteString(`(.*?)`)
		}
	}
	literal(format[end:])
	if letters < minLiteral || len(f.args) == 0 && !percent {
		return form{}, false
	}
	shape.WriteString(`)\z`)
	f.shape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(shape.String()) })
	return f, true
}

// formsOf returns the forms of all sentences of a language, the surest first. Their plurals are recognised by those of English.
func formsOf(c, english catalogue) []form {
	var forms []form
	for key := range c.Sentences {
		formats := []string{key}
		for _, other := range english.Sentences[key].forms {
			if !slices.Contains(formats, other) {
				formats = append(formats, other)
			}
		}
		for _, format := range formats {
			if f, ok := formOf(key, format); ok {
				forms = append(forms, f)
			}
		}
	}
	slices.SortFunc(forms, func(a, b form) int {
		if a.literal != b.literal {
			return b.literal - a.literal
		}
		return strings.Compare(a.key, b.key)
	})
	return forms
}

// pieces takes a sentence apart; false when it was not made from the format.
func (f form) pieces(sentence string) ([]any, bool) {
	if !f.mayBe(sentence) {
		return nil, false
	}
	found := f.shape().FindStringSubmatch(sentence)
	if found == nil {
		return nil, false
	}
	var args []any
	for i, text := range found[1:] {
		for len(args) <= f.args[i] {
			args = append(args, piece(""))
		}
		args[f.args[i]] = piece(text)
	}
	return args, true
}

// mayBe reports whether the literals stand in a sentence in their order, the first and the last at its ends.
func (f form) mayBe(sentence string) bool {
	first, last := f.literals[0], f.literals[len(f.literals)-1]
	if !strings.HasPrefix(sentence, first) || !strings.HasSuffix(sentence, last) {
		return false
	}
	for _, text := range f.literals {
		at := strings.Index(sentence, text)
		if at < 0 {
			return false
		}
		sentence = sentence[at+len(text):]
	}
	return true
}

// piece is a part of a sentence that stays as it was written, whatever verb it is put in place of.
type piece string

// Format writes the piece.
func (p piece) Format(state fmt.State, _ rune) { _, _ = state.Write([]byte(p)) }

// words puts an English sentence that was made elsewhere into the language, and returns it as it is where it is not known. It takes
// anything whose kind is string, and what is Spoken already.
func (l Language) words(sentence any) string {
	if s, ok := sentence.(Spoken); ok {
		return s.in(l)
	}
	v := reflect.ValueOf(sentence)
	if v.Kind() != reflect.String {
		return fmt.Sprint(sentence)
	}
	text := v.String()
	if l.forms == nil || len(text) > maxRecognised {
		return text
	}
	if s, ok := l.sentences[text]; ok && s.forms == nil && !strings.Contains(text, "%") {
		return l.say(text)
	}
	for _, f := range l.forms() {
		if args, ok := f.pieces(text); ok {
			return l.rephrased(f, args, text)
		}
	}
	return text
}

// choice is a piece that lists words, with one of two more between the last of them.
var choice = regexp.MustCompile(`\A(\S+(?:, \S+)*) (or|and) (\S+)\z`)

// rephrased says the sentence of a form with the pieces of the English one. A number that chooses the plural has to be one.
func (l Language) rephrased(f form, args []any, english string) string {
	for i, arg := range args {
		if parts := choice.FindStringSubmatch(fmt.Sprint(arg)); parts != nil {
			args[i] = piece(parts[1] + " " + l.say(parts[2]) + " " + parts[3])
		}
	}
	if l.sentences[f.key].forms != nil {
		text, ok := args[0].(piece)
		n, err := strconv.Atoi(string(text))
		if !ok || err != nil {
			return english
		}
		args[0] = n
	}
	return l.say(f.key, args...)
}
