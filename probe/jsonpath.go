package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"
)

// maxPathWork bounds the steps that a JSONPath may take through one result: a few tenths of a second.
const maxPathWork = 2_000_000

// maxPathValues bounds how many values a path may select: each is looked at by itself.
const maxPathValues = 10_000

var errPathWork = errors.New("the path takes too many steps through a result of this size")

// jsonPath is a compiled JSONPath (RFC 9535). The library's own way through a document knows no bound, and a path like
// $..*..*..* takes time without end in a document made for it; so the segments are walked here, and counted.
type jsonPath struct {
	segments []*spec.Segment
	filters  map[*spec.FilterSelector]filterWork
}

var paths memo[*jsonPath]

func compilePath(text string) (*jsonPath, error) {
	parsed, err := jsonpath.Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": "))
	}
	p := &jsonPath{segments: parsed.Query().Segments(), filters: map[*spec.FilterSelector]filterWork{}}
	for _, segment := range p.segments {
		for _, selector := range segment.Selectors() {
			filter, ok := selector.(*spec.FilterSelector)
			if !ok {
				continue
			}
			if p.filters[filter], err = workOf(filter.String()); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// filterWork tells how much a filter may do for one value, which the library does in one go: at most
// nodes^powers × depth^descents × factor steps in a document of so many nodes and so deep, and a search of its longest
// string with regexes of a size.
type filterWork struct {
	powers   int
	descents int // the library copies what it finds below a value once for each level above it
	factor   int
	regex    int
}

// regexSteps is how many bytes are searched with one instruction of a regex in the time of a step.
const regexSteps = 20

var (
	quoted      = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)
	regexCall   = regexp.MustCompile(`\b(?:match|search)\(`)
	regexPlain  = regexp.MustCompile(`\b(?:match|search)\([^()]*, ?""\)`)
	costlyParts = []string{"..", "$", "*", ":", "?"}
)

// workOf estimates a filter from how it is written: everything that visits more than one value for each value is counted
// as if it visited the whole document.
func workOf(filter string) (filterWork, error) {
	bare := quoted.ReplaceAllString(filter, `""`)
	if len(regexCall.FindAllString(bare, -1)) != len(regexPlain.FindAllString(bare, -1)) {
		return filterWork{}, errors.New("match() and search() take a regex written as a literal only")
	}
	work := filterWork{factor: 1}
	for _, part := range costlyParts {
		work.powers += strings.Count(bare, part)
	}
	work.powers-- // the question mark of the filter itself
	work.descents = strings.Count(bare, "..")
	for range min(strings.Count(bare, ","), 30) {
		work.factor *= 2 // [*,*] selects everything twice
	}
	if regexCall.MatchString(bare) {
		work.factor *= 1000 // compiled for each value
		for _, literal := range quoted.FindAllString(filter, -1) {
			// A name is taken for a regex, too, which is a small one. What is none is not searched for.
			if regex, err := regexes.get(unquoted(literal), compileRegex); err == nil {
				work.regex += regex.size
			}
		}
	}
	return work, nil
}

// find returns the values of a document that p selects, in the order in which they are written, members of objects by
// name.
func (p *jsonPath) find(document any) ([]any, error) {
	w := pathWalk{path: p, root: document, left: maxPathWork}
	values := []any{document}
	for _, segment := range p.segments {
		w.found = nil
		for _, value := range values {
			if err := w.segment(segment, value); err != nil {
				return nil, err
			}
		}
		values = w.found
	}
	if len(values) > maxPathValues {
		return nil, fmt.Errorf("the path selects %d values, more than %d", len(values), maxPathValues)
	}
	return values, nil
}

// pathWalk is one way through a document.
type pathWalk struct {
	path  *jsonPath
	root  any
	left  int     // steps
	size  measure // of root; taken when needed
	found []any
}

func (w *pathWalk) segment(s *spec.Segment, value any) error {
	for _, selector := range s.Selectors() {
		if err := w.selector(selector, value); err != nil {
			return err
		}
	}
	if !s.IsDescendant() {
		return nil
	}
	return w.each(value, func(child any) error { return w.segment(s, child) })
}

func (w *pathWalk) selector(s spec.Selector, value any) error {
	switch s := s.(type) {
	case *spec.FilterSelector:
		return w.filter(s, value)
	case spec.WildcardSelector:
		return w.each(value, func(child any) error {
			w.found = append(w.found, child)
			return nil
		})
	default: // a name, an index or a slice
		if err := w.spend(1 + childCount(value, s)); err != nil {
			return err
		}
		w.found = append(w.found, s.Select(value, w.root)...)
		return nil
	}
}

// childCount returns how many values a slice visits at most; a name and an index visit one.
func childCount(value any, s spec.Selector) int {
	list, ok := value.([]any)
	if _, slice := s.(spec.SliceSelector); slice && ok {
		return len(list)
	}
	return 0
}

func (w *pathWalk) filter(f *spec.FilterSelector, value any) error {
	work := w.path.filters[f]
	steps := work.factor
	if w.size.nodes == 0 {
		w.size = measured(w.root)
	}
	for i := range work.powers + work.descents {
		by := w.size.nodes
		if i >= work.powers {
			by = w.size.depth
		}
		if steps *= by; steps > maxPathWork {
			return errPathWork
		}
	}
	steps += work.regex * w.size.longest / regexSteps
	return w.each(value, func(child any) error {
		if err := w.spend(steps); err != nil {
			return err
		}
		if passes(f, child, w.root) {
			w.found = append(w.found, child)
		}
		return nil
	})
}

// passes applies a filter to one value. The library panics where match or search are given a value that is not there,
// which RFC 9535 (§2.4.6) calls no match.
func passes(f *spec.FilterSelector, value, root any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return f.Eval(value, root)
}

// each calls visit for each child of value.
func (w *pathWalk) each(value any, visit func(any) error) error {
	switch value := value.(type) {
	case []any:
		if err := w.spend(len(value)); err != nil {
			return err
		}
		for _, child := range value {
			if err := visit(child); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := w.spend(len(value)); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := visit(value[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *pathWalk) spend(steps int) error {
	if w.left -= steps; w.left < 0 {
		return errPathWork
	}
	return nil
}

// measure is how large a document is.
type measure struct {
	nodes   int // values, the document itself included
	depth   int
	longest int // bytes of its longest string
}

// measured returns how large a document is.
func measured(value any) measure {
	m := measure{nodes: 1}
	add := func(child any) {
		inner := measured(child)
		m.nodes += inner.nodes
		m.depth, m.longest = max(m.depth, inner.depth), max(m.longest, inner.longest)
	}
	switch value := value.(type) {
	case string:
		m.longest = len(value)
	case []any:
		for _, child := range value {
			add(child)
		}
	case map[string]any:
		for _, child := range value {
			add(child)
		}
	}
	m.depth++
	return m
}

// unquoted returns what a literal of a path stands for.
func unquoted(literal string) string {
	var text string
	if json.Unmarshal([]byte(literal), &text) == nil {
		return text
	}
	return literal[1 : len(literal)-1] // in single quotes, or with escapes that only paths know
}
