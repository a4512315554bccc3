package probe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Rank says how much a change of a contract matters. Ranks are stored as they are.
type Rank string

// The ranks, the most serious first.
const (
	RankBreaking Rank = "breaking" // calls that were right may be wrong, or results lack what they had
	RankWarning  Rank = "warning"  // somebody should look at it
	RankInfo     Rank = "info"
)

// ChangeKind says what changed. Kinds are stored as they are.
type ChangeKind string

// The kinds of changes, with the rank they usually have.
const (
	ToolRemoved        ChangeKind = "tool_removed"        // breaking
	ToolAdded          ChangeKind = "tool_added"          // info
	RequiredAdded      ChangeKind = "required_added"      // breaking: an argument must be given
	RequiredRemoved    ChangeKind = "required_removed"    // info: an argument may be left out
	OptionalAdded      ChangeKind = "optional_added"      // info: an argument that may be given
	PropertyRemoved    ChangeKind = "property_removed"    // breaking: an argument is gone
	TypeChanged        ChangeKind = "type_changed"        // breaking: an argument of the old type is refused
	TypeWidened        ChangeKind = "type_widened"        // info: an argument may have other types, too
	EnumNarrowed       ChangeKind = "enum_narrowed"       // breaking: a value is refused
	EnumWidened        ChangeKind = "enum_widened"        // info: a value is accepted
	DescriptionChanged ChangeKind = "description_changed" // info
	TitleChanged       ChangeKind = "title_changed"       // info
	AnnotationsChanged ChangeKind = "annotations_changed" // warning when a tool may do harm that said it would not, else info
	OutputChanged      ChangeKind = "output_changed"      // breaking when a type or a property of the result goes, else info
	SchemaChanged      ChangeKind = "schema_changed"      // info: anything else
	MoreChanges        ChangeKind = "more_changes"        // of the rank of the most serious one left out
)

// Change is one difference of two contracts.
type Change struct {
	Rank    Rank       `json:"rank"`
	Kind    ChangeKind `json:"kind"`
	Tool    string     `json:"tool,omitempty"` // its name; empty for MoreChanges
	Path    string     `json:"path,omitempty"` // where in the tool, as a JSON Pointer (RFC 6901) with long names cut; empty: the tool
	Message string     `json:"message"`        // at most MaxMessage bytes
}

// Bounds on what is compared and told of two contracts, which strangers wrote.
const (
	maxChanges     = 200       // told; one more says how many are left out
	maxCollected   = 10_000    // of each rank, to choose the most serious from
	maxCompareWork = 100_000   // members of schemas looked at for one tool
	maxCompareTool = maxSchema // bytes of a tool that is looked into
)

// DiffContracts returns what changed between two Contract.Tools, the most serious first, at most 201 changes; nothing when
// they are the same. References within a schema are followed, those that lead elsewhere are compared as they are
// written. It fails when either is not an array of objects.
func DiffContracts(before, after []byte) ([]Change, error) {
	if bytes.Equal(before, after) {
		return nil, nil
	}
	old, err := contractTools(before)
	if err != nil {
		return nil, fmt.Errorf("read the contract before: %w", err)
	}
	recent, err := contractTools(after)
	if err != nil {
		return nil, fmt.Errorf("read the contract after: %w", err)
	}
	d := differ{changes: map[Rank][]Change{}, left: map[Rank]int{}}
	for key, tool := range old {
		d.tool = key.name
		now, still := recent[key]
		switch {
		case !still:
			d.add(ToolRemoved, RankBreaking, place{}, "the tool is gone")
		case !bytes.Equal(tool, now):
			d.compareTools(tool, now)
		}
	}
	for key := range recent {
		if _, known := old[key]; !known {
			d.tool = key.name
			d.add(ToolAdded, RankInfo, place{}, "a tool that was not there")
		}
	}
	return d.sorted(), nil
}

// differ collects the changes of two contracts.
type differ struct {
	changes map[Rank][]Change
	left    map[Rank]int // more of that rank than were collected

	// Of the tool that is being compared.
	tool   string
	found  int
	output bool // in its outputSchema
	work   int
	tired  bool               // there was more to compare than we are willing to
	seen   map[[2]string]bool // pairs of references that were compared: what changed behind them is told once
	before map[string]any     // the whole schemas, which references point into
	after  map[string]any
}

// place is where in a tool a change is.
type place struct {
	path string // JSON Pointer
	name string // of an argument, as people would say it: filter.tags[]
}

func (p place) in(keyword string) place { return place{p.path + "/" + keyword, p.name} }

func (p place) property(name string) place {
	name = tidy(name, 60)
	pointer := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	if p.name != "" {
		name = p.name + "." + name
	}
	return place{p.path + "/properties/" + pointer, name}
}

func (d *differ) add(kind ChangeKind, rank Rank, at place, format string, args ...any) {
	d.found++
	if d.output && kind != OutputChanged {
		kind, rank = OutputChanged, outputRank(kind)
	}
	if len(d.changes[rank]) == maxCollected {
		d.left[rank]++
		return
	}
	message := fmt.Sprintf(format, args...)
	if at.name != "" {
		message = d.noun() + ` "` + clip(at.name, 150) + `" ` + message
	}
	d.changes[rank] = append(d.changes[rank], Change{
		Rank: rank, Kind: kind, Tool: tidy(d.tool, maxToolName), Path: clip(at.path, 300), Message: tidy(message, MaxMessage),
	})
}

func (d *differ) noun() string {
	if d.output {
		return "result"
	}
	return "argument"
}

// outputRank ranks what would be a change of an argument in a result: there it matters what goes.
func outputRank(kind ChangeKind) Rank {
	if kind == PropertyRemoved {
		return RankBreaking
	}
	return RankInfo
}

func (d *differ) sorted() []Change {
	var all []Change
	for _, rank := range []Rank{RankBreaking, RankWarning, RankInfo} {
		changes := d.changes[rank]
		slices.SortFunc(changes, func(a, b Change) int {
			return cmp.Or(strings.Compare(a.Tool, b.Tool), strings.Compare(a.Path, b.Path),
				strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Message, b.Message))
		})
		all = append(all, changes...)
	}
	more := d.left[RankBreaking] + d.left[RankWarning] + d.left[RankInfo] + max(0, len(all)-maxChanges)
	if more == 0 {
		return all
	}
	rest := RankInfo
	switch {
	case len(all) > maxChanges:
		rest = all[maxChanges].Rank
	case d.left[RankBreaking] > 0:
		rest = RankBreaking
	case d.left[RankWarning] > 0:
		rest = RankWarning
	}
	all = all[:min(len(all), maxChanges)]
	return append(all, Change{Rank: rest, Kind: MoreChanges, Message: fmt.Sprintf("and %d more changes", more)})
}

// compareTools compares two tools of one name that are not the same.
func (d *differ) compareTools(before, after []byte) {
	d.found, d.work, d.output, d.tired = 0, 0, false, false
	old, now := map[string]any{}, map[string]any{}
	if len(before) > maxCompareTool || len(after) > maxCompareTool || decodeNumbers(before, &old) != nil || decodeNumbers(after, &now) != nil {
		d.add(SchemaChanged, RankInfo, place{}, "changed, and is too large to be compared")
		return
	}
	root := place{}
	d.compareText(TitleChanged, "title", root, old, now)
	d.compareText(DescriptionChanged, "description", root, old, now)
	d.compareAnnotations(old["annotations"], now["annotations"])
	if !reflect.DeepEqual(old["execution"], now["execution"]) {
		d.add(SchemaChanged, RankInfo, root.in("execution"), "is executed in another way")
	}
	d.compareWhole("inputSchema", old, now)
	d.output = true
	d.compareWhole("outputSchema", old, now)
	d.output = false
	if d.found == 0 {
		d.add(SchemaChanged, RankInfo, root, "changed in a way that no rule speaks of")
	}
}

// decodeNumbers decodes JSON with its numbers as they are written.
func decodeNumbers(raw []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(v)
}

func (d *differ) compareText(kind ChangeKind, name string, at place, before, after map[string]any) {
	old, now := before[name], after[name]
	if reflect.DeepEqual(old, now) {
		return
	}
	d.add(kind, RankInfo, at.in(name), "has another %s: %s", name, jsonWords(now, 300))
}

// jsonWords shows a JSON value in a message, in at most so many bytes.
func jsonWords(v any, max int) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return strconv.Quote(clip(v, max))
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	default:
		return clip(fmt.Sprint(v), max)
	}
}

// compareAnnotations compares the hints about what a tool does. A tool that says nothing of it may do harm (schema of
// ToolAnnotations: readOnlyHint is false by default, destructiveHint true), and the latter counts only without the former.
func (d *differ) compareAnnotations(before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	at := place{}.in("annotations")
	old, now := readHints(before), readHints(after)
	switch {
	case old.readOnly && !now.readOnly:
		d.add(AnnotationsChanged, RankWarning, at.in("readOnlyHint"), "no longer says that it only reads")
	case !old.harmful() && now.harmful():
		d.add(AnnotationsChanged, RankWarning, at.in("destructiveHint"), "may destroy something, which it said it would not")
	default:
		d.add(AnnotationsChanged, RankInfo, at, "has other annotations")
	}
}

// hints are what the annotations of a tool say of its effects.
type hints struct{ readOnly, destructive bool }

func (h hints) harmful() bool { return !h.readOnly && h.destructive }

func readHints(annotations any) hints {
	members, _ := annotations.(map[string]any)
	readOnly, _ := members["readOnlyHint"].(bool)
	destructive, said := members["destructiveHint"].(bool)
	return hints{readOnly, destructive || !said}
}

// compareWhole compares the schemas that two tools have under one name.
func (d *differ) compareWhole(name string, before, after map[string]any) {
	at := place{}.in(name)
	old, had := before[name]
	now, has := after[name]
	switch {
	case !had && !has || had && has && reflect.DeepEqual(old, now):
		return
	case had && !has && d.output:
		d.add(OutputChanged, RankBreaking, at, "no longer says what its results look like")
		return
	case had && !has:
		d.add(SchemaChanged, RankInfo, at, "no longer says what its arguments look like")
		return
	case !had:
		d.add(SchemaChanged, RankInfo, at, "has a schema, which it had not")
		return
	}
	d.before, _ = old.(map[string]any)
	d.after, _ = now.(map[string]any)
	d.seen = map[[2]string]bool{}
	d.compare(at, old, now, 0)
}

// compare compares two schemas. What it finds is worded for arguments; add knows what it means for results.
func (d *differ) compare(at place, before, after any, depth int) {
	if depth > maxFormDepth || d.work > maxCompareWork {
		if !d.tired {
			d.add(SchemaChanged, RankInfo, at, "is too much to be compared to its end")
		}
		d.tired = true
		return
	}
	old, oldRef := d.follow(before, d.before)
	now, nowRef := d.follow(after, d.after)
	if oldRef != "" && nowRef != "" {
		pair := [2]string{oldRef, nowRef}
		if d.seen[pair] {
			old, now = besideRef(before), besideRef(after)
		}
		d.seen[pair] = true
	}
	d.work += 1 + len(old) + len(now)
	told := d.compareTypes(at, before, after, old, now)
	d.compareProperties(at, old, now, depth)
	d.compareEnums(at, old, now)
	for _, keyword := range []string{"items", "additionalProperties"} {
		d.compareBelow(at, keyword, old, now, depth)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if told && hasMember(old, keyword) != hasMember(now, keyword) {
			continue // alternatives are another way to say which types there are
		}
		d.compareBranches(at, keyword, old, now, depth)
	}
	d.compareRest(at, old, now)
}

// follow returns the members of a schema; of one that only refers to another part of its document those of that part,
// with its own in front, and where they came from. The schemas true and false have no members.
func (d *differ) follow(schema any, document map[string]any) (members map[string]any, from string) {
	members, _ = schema.(map[string]any)
	for range 10 { // references to references are rare, and may go in circles
		ref, ok := members["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#") {
			return members, from
		}
		target, err := lookUp(ref, document)
		inner, isObject := target.(map[string]any)
		if d.work += len(inner); err != nil || !isObject || d.work > maxCompareWork {
			return members, from
		}
		joined := maps.Clone(inner)
		for name, value := range members {
			if name != "$ref" {
				joined[name] = value
			}
		}
		members, from = joined, from+ref+" "
	}
	return members, from
}

// besideRef returns what a schema says beside its reference.
func besideRef(schema any) map[string]any {
	members, _ := schema.(map[string]any)
	members = maps.Clone(members)
	delete(members, "$ref")
	return members
}

var errNoTarget = errors.New("leads nowhere")

// lookUp returns what a reference like #/$defs/point or #point leads to. Without a name it is the document itself.
func lookUp(ref string, document any) (any, error) {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, err
	}
	if fragment == "" {
		return document, nil
	}
	pointer, ok := strings.CutPrefix(fragment, "/")
	if !ok {
		return nil, errNoTarget
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(pointer, "/") {
		switch v := document.(type) {
		case map[string]any:
			if document, ok = v[unescape.Replace(part)]; !ok {
				return nil, errNoTarget
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, errNoTarget
			}
			document = v[i]
		default:
			return nil, errNoTarget
		}
	}
	return document, nil
}

func hasMember(members map[string]any, name string) bool {
	_, ok := members[name]
	return ok
}

// compareTypes compares which types of values two schemas take, and reports whether they differ.
func (d *differ) compareTypes(at place, before, after any, oldMembers, nowMembers map[string]any) bool {
	old, oldKnown := typesOf(before, oldMembers, 0)
	now, nowKnown := typesOf(after, nowMembers, 0)
	if oldKnown == nowKnown && slices.Equal(old, now) {
		return false
	}
	takesOld := !nowKnown || oldKnown && covers(now, old) // whatever was right still is
	givesOld := !oldKnown || nowKnown && covers(old, now) // whatever comes was possible before
	was, is := typeWords(old, oldKnown), typeWords(now, nowKnown)
	switch {
	case d.output && givesOld:
		d.add(OutputChanged, RankInfo, at.in("type"), "is %s, was %s", is, was)
	case d.output:
		d.add(OutputChanged, RankBreaking, at.in("type"), "is %s, was %s", is, was)
	case takesOld:
		d.add(TypeWidened, RankInfo, at.in("type"), "may be %s, was %s", is, was)
	default:
		d.add(TypeChanged, RankBreaking, at.in("type"), "must be %s, was %s", is, was)
	}
	return true
}

// typesOf returns the types that a schema takes, sorted, and false when it takes any or does not say. The schema false
// takes none.
func typesOf(schema any, members map[string]any, depth int) ([]string, bool) {
	if taken, ok := schema.(bool); ok {
		return nil, !taken
	}
	switch t := members["type"].(type) {
	case string:
		return []string{clip(t, 40)}, true
	case []any:
		return typeNames(t)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches, ok := members[keyword].([]any)
		if !ok || depth > 3 || len(branches) > 100 {
			continue
		}
		var union []string
		for _, branch := range branches {
			inner, _ := branch.(map[string]any)
			types, known := typesOf(branch, inner, depth+1)
			if !known {
				return nil, false
			}
			union = append(union, types...)
		}
		slices.Sort(union)
		return slices.Compact(union), true
	}
	return nil, false
}

func typeNames(list []any) ([]string, bool) {
	var names []string
	for _, item := range list[:min(len(list), 20)] {
		name, ok := item.(string)
		if !ok {
			return nil, false
		}
		names = append(names, clip(name, 40))
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// covers reports whether every type of inner is one of outer. An integer is a number.
func covers(outer, inner []string) bool {
	for _, t := range inner {
		if !slices.Contains(outer, t) && (t != "integer" || !slices.Contains(outer, "number")) {
			return false
		}
	}
	return true
}

func typeWords(types []string, known bool) string {
	switch {
	case !known:
		return "anything"
	case len(types) == 0:
		return "nothing"
	default:
		return strings.Join(types, " or ")
	}
}

func (d *differ) compareProperties(at place, before, after map[string]any, depth int) {
	old, _ := before["properties"].(map[string]any)
	now, _ := after["properties"].(map[string]any)
	wasRequired, isRequired := requiredOf(before), requiredOf(after)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		here := at.property(name)
		inner, still := now[name]
		if !still {
			d.add(PropertyRemoved, RankBreaking, here, "is gone")
			continue
		}
		d.compare(here, old[name], inner, depth+1)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, known := old[name]; known {
			continue
		}
		if isRequired[name] {
			d.add(RequiredAdded, RankBreaking, at.property(name), "is there, and must be given")
		} else {
			d.add(OptionalAdded, RankInfo, at.property(name), "is there, and may be left out")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(isRequired)) {
		_, had := old[name]
		_, has := now[name]
		if !wasRequired[name] && had == has {
			d.add(RequiredAdded, RankBreaking, at.property(name), "must be given")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wasRequired)) {
		_, had := old[name]
		_, has := now[name]
		if !isRequired[name] && had == has {
			d.add(RequiredRemoved, RankInfo, at.property(name), "may be left out")
		}
	}
}

// requiredOf returns the names that a schema requires.
func requiredOf(schema map[string]any) map[string]bool {
	list, _ := schema["required"].([]any)
	names := make(map[string]bool, len(list))
	for _, item := range list {
		if name, ok := item.(string); ok {
			names[name] = true
		}
	}
	return names
}

// compareEnums compares the values that two schemas are limited to. A const is an enum of one.
func (d *differ) compareEnums(at place, before, after map[string]any) {
	old, was := valuesOf(before)
	now, is := valuesOf(after)
	switch {
	case !was && !is:
	case !was:
		d.add(EnumNarrowed, RankBreaking, at.in("enum"), "must be one of %s", valueWords(now))
	case !is:
		d.add(EnumWidened, RankInfo, at.in("enum"), "is no longer limited to certain values")
	default:
		if gone := without(old, now); len(gone) > 0 {
			d.add(EnumNarrowed, RankBreaking, at.in("enum"), "must no longer be %s", valueWords(gone))
		}
		if more := without(now, old); len(more) > 0 {
			d.add(EnumWidened, RankInfo, at.in("enum"), "may be %s", valueWords(more))
		}
	}
}

// valuesOf returns the values that a schema is limited to, as JSON, and whether it is.
func valuesOf(schema map[string]any) ([]string, bool) {
	list, ok := schema["enum"].([]any)
	if constant, has := schema["const"]; has {
		list, ok = []any{constant}, true
	}
	values := make([]string, 0, len(list))
	for _, v := range list {
		raw, _ := json.Marshal(v) //nolint:errchkjson // it came from JSON
		values = append(values, string(raw))
	}
	slices.Sort(values)
	return slices.Compact(values), ok
}

// without returns the items of list that are not in other; both are sorted.
func without(list, other []string) []string {
	var rest []string
	for _, item := range list {
		if _, found := slices.BinarySearch(other, item); !found {
			rest = append(rest, item)
		}
	}
	return rest
}

func valueWords(values []string) string {
	const most = 5
	var words []string
	for _, v := range values[:min(len(values), most)] {
		words = append(words, clip(v, 40))
	}
	if len(values) > most {
		words = append(words, fmt.Sprintf("or any of %d others", len(values)-most))
	}
	return strings.Join(words, ", ")
}

// compareBelow compares the schemas of items and the like.
func (d *differ) compareBelow(at place, keyword string, before, after map[string]any, depth int) {
	old, isSchema := before[keyword].(map[string]any)
	now, stillSchema := after[keyword].(map[string]any)
	if !isSchema || !stillSchema {
		d.compareKeyword(at, keyword, before, after)
		return
	}
	here := at.in(keyword)
	if keyword == "items" {
		here.name += "[]"
	} else {
		here.name += ".*"
	}
	d.compare(here, old, now, depth+1)
}

// compareBranches compares alternatives: what is the same on both sides is put aside, in whatever order, and of the rest
// those of the same types are compared with each other.
func (d *differ) compareBranches(at place, keyword string, before, after map[string]any, depth int) {
	const most = 100 // to compare each with each
	old, isList := before[keyword].([]any)
	now, stillList := after[keyword].([]any)
	if !isList || !stillList || len(old) > most || len(now) > most {
		d.compareKeyword(at, keyword, before, after)
		return
	}
	here := at.in(keyword)
	old, now, _ = d.pairOff(old, now, func(branch any, _ map[string]any) string {
		if refers(branch, 0) {
			return "" // may mean something else though it is written the same
		}
		raw, _ := json.Marshal(branch) // came from JSON
		return string(raw)
	})
	old, now, pairs := d.pairOff(old, now, func(branch any, document map[string]any) string {
		members, _ := d.follow(branch, document)
		types, known := typesOf(branch, members, 0)
		return typeWords(types, known)
	})
	for _, pair := range pairs {
		d.compare(here, pair[0], pair[1], depth+1)
	}
	if len(old) > 0 || len(now) > 0 {
		d.add(SchemaChanged, RankInfo, here, "has other alternatives")
	}
}

// pairOff finds for branches of before partners among those of after that have the same key, and returns which were left
// alone. A branch without a key stays alone.
func (d *differ) pairOff(before, after []any, key func(branch any, document map[string]any) string) (restBefore, restAfter []any, pairs [][2]any) {
	waiting := map[string][]int{} // of after, by key
	taken := make([]bool, len(after))
	for i, branch := range after {
		if k := key(branch, d.after); k != "" {
			waiting[k] = append(waiting[k], i)
		}
	}
	for _, branch := range before {
		k := key(branch, d.before)
		if len(waiting[k]) == 0 {
			restBefore = append(restBefore, branch)
			continue
		}
		i := waiting[k][0]
		waiting[k] = waiting[k][1:]
		taken[i] = true
		pairs = append(pairs, [2]any{branch, after[i]})
	}
	for i, branch := range after {
		if !taken[i] {
			restAfter = append(restAfter, branch)
		}
	}
	return restBefore, restAfter, pairs
}

// refers reports whether there is a reference in a schema.
func refers(schema any, depth int) bool {
	if depth > maxFormDepth {
		return true
	}
	switch v := schema.(type) {
	case map[string]any:
		if _, ok := v["$ref"]; ok {
			return true
		}
		for _, inner := range v {
			if refers(inner, depth+1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return refers(inner, depth+1) })
	}
	return false
}

// comparedElsewhere are the keywords that compareRest has nothing to say about.
var comparedElsewhere = []string{
	"type", "properties", "required", "enum", "const", "items", "additionalProperties", "anyOf", "oneOf", "allOf", "$defs", "definitions",
}

// compareRest compares all that has no rule of its own.
func (d *differ) compareRest(at place, before, after map[string]any) {
	keywords := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(keywords)
	for _, keyword := range slices.Compact(keywords) {
		switch {
		case slices.Contains(comparedElsewhere, keyword):
		case keyword == "title":
			d.compareText(TitleChanged, keyword, at, before, after)
		case keyword == "description":
			d.compareText(DescriptionChanged, keyword, at, before, after)
		default:
			d.compareKeyword(at, keyword, before, after)
		}
	}
}

func (d *differ) compareKeyword(at place, keyword string, before, after map[string]any) {
	old, now := before[keyword], after[keyword]
	if reflect.DeepEqual(old, now) {
		return
	}
	keyword = tidy(keyword, 60)
	d.add(SchemaChanged, RankInfo, at.in(keyword), "has another %s: %s, was %s", keyword, jsonWords(now, 100), jsonWords(old, 100))
}
