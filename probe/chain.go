package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sighting is what the calls of one check have told so far.
type sighting struct {
	head     Head
	headStep int // index into Result.Steps; -1 while no height is known

	kept map[string]string // by name, what later calls ask with

	finalized, safe *uint64
	finalStep       int

	flagged  string  // why the node counts as catching up, in its own way of saying it; empty when it does not
	distance *uint64 // how far it says it is from where it should be
	class    Class   // what to call that; empty: syncing
	syncStep int     // where flagged, or distance, comes from
}

// chain asks a chain node what its preset says, and judges the whole. The steps are those of the preset; what a node may
// lack does not make it a bad one.
//
//	liveness ─► identity ─► head ─► sync ─► finality      the order is that of the preset
//	each: askCall ─► dialect ─► excuse, or take           chain.go, dialect.go
//	all together: judgeChain ─► view                      head.go, lag.go, pace.go
func (c *conversation) chain(ctx context.Context, p *preset) *Failure {
	if c.target.Options.Subscribe {
		return c.subscribe(ctx, p)
	}
	return c.chainFrom(ctx, p, nil)
}

// chainFrom goes on from an answer to the liveness call, if there is one.
func (c *conversation) chainFrom(ctx context.Context, p *preset, first *answer) *Failure {
	c.readError = func(e *rpcError) *problem { return c.familyProblem(p, e) }
	defer func() { c.readError = nil }()
	if first != nil && first.rpc != nil && first.problem != nil && first.problem.code == first.rpc.Code {
		c.failWith(first, *c.rpcProblem(first.rpc)) // it was asked before its family was known
	}
	s := sighting{headStep: -1}
	refused := map[string]bool{} // methods that the node does not know: they are not asked for twice
	for i, call := range p.callsFor(c.url) {
		call, ok := s.filled(call)
		if refused[call.Method] || !ok {
			continue
		}
		var a answer
		if i == 0 && first != nil {
			a = *first
		} else {
			a = c.askCall(ctx, p, call)
		}
		if failure := c.hear(p, call, a, &s); failure != nil {
			return c.stillStarting(p, failure)
		}
		if call.Method != "" && a.problem != nil && unknownMethod(a) {
			refused[call.Method] = true
		}
		if i == 0 {
			c.result.Kind = p.Kind
		}
	}
	return c.judgeChain(ctx, p, &s)
}

// filled returns a call with what earlier ones have told in its parameters, and whether all of that is known.
func (s *sighting) filled(wanted *call) (*call, bool) {
	if !bytes.Contains(wanted.Params, []byte(`"$`)) {
		return wanted, true
	}
	params := wanted.Params
	if s.headStep >= 0 {
		params = bytes.ReplaceAll(params, []byte(`"$height"`), strconv.AppendUint(nil, s.head.Height, 10))
	}
	for name, text := range s.kept {
		quoted, _ := json.Marshal(text) //nolint:errchkjson // a string always can be
		params = bytes.ReplaceAll(params, []byte(`"$`+name+`"`), quoted)
	}
	filled := *wanted
	filled.Params = params
	return &filled, !bytes.Contains(params, []byte(`"$`))
}

// keep remembers what later calls ask with.
func (s *sighting) keep(name, text string) {
	if s.kept == nil {
		s.kept = map[string]string{}
	}
	s.kept[name] = text
}

// askCall asks one call of a preset.
func (c *conversation) askCall(ctx context.Context, p *preset, call *call) answer {
	switch {
	case call.Get != "":
		return c.askDocument(ctx, p, call)
	case p.Envelope != "":
		return c.askDialect(ctx, p, call.name(), call.Method, call.Params)
	}
	q := question{step: call.name(), method: call.Method}
	if call.Params != nil {
		q.params = call.Params
	}
	return c.ask(ctx, q)
}

// hear takes in what an answer says. A failure ends the conversation.
func (c *conversation) hear(p *preset, call *call, a answer, s *sighting) *Failure {
	if a.problem == nil {
		c.take(p, call, &a, s)
	}
	if a.problem != nil {
		return c.excuse(call, &a)
	}
	return nil
}

// excuse returns the failure that a problem is, nil when the node is well all the same.
func (c *conversation) excuse(call *call, a *answer) *Failure {
	class := a.problem.class
	switch {
	case a.rpc != nil && (class == ClassHeadLagging || class == ClassSyncing || class == ClassHeadBehind):
		// It answers, and says in its own way how it is: the other calls tell the rest.
		message, code := a.problem.message, a.problem.code
		c.quieten(a)
		c.show(a.step, finding{class: class, message: message, code: code})
		return nil
	case call.Need == needMust || class == ClassRateLimited || class == ClassWrongChain:
		return c.failure(*a)
	case unknownMethod(*a), call.tagOnly() && a.rpc != nil:
		c.quieten(a)
		return nil
	case call.Need == needMay && (a.rpc != nil || slices.Contains(oddAnswers, class)):
		problem := *a.problem
		c.quieten(a)
		c.warn(call.name(), problem.class, problem.code, "%s", problem.message)
		return nil
	default:
		return c.failure(*a)
	}
}

// oddAnswers are problems of one answer. Any other is one of the connection, and the next call would have it, too.
var oddAnswers = []Class{ClassHTTPStatus, ClassAssertionFailed, ClassInvalidJSON, ClassInvalidEnvelope, ClassContentType, ClassIDMismatch}

// tagOnly reports whether a call only asks for a block that not every chain has.
func (c *call) tagOnly() bool {
	return c.Need == needMay && (!c.Read.Finalized.isZero() || !c.Read.Safe.isZero())
}

// quieten makes a step that failed a good one: what it lacks nobody has to offer.
func (c *conversation) quieten(a *answer) {
	step := &c.result.Steps[a.step]
	step.Class, step.Code, step.Message = "", 0, ""
	a.problem = nil
}

// unknownWords are how servers say that they do not know a method, or do not let everybody call it.
var unknownWords = regexp.MustCompile(`(?i)(unknown|unsupported|invalid|no such) (method|command)|method\b.{0,80}\b(not|unknown|unsupported|disabled)|not (implemented|supported)|does not exist`)

// unknownMethod reports whether an endpoint that is otherwise alive refused a method as such.
func unknownMethod(a answer) bool {
	if a.rpc != nil && (a.rpc.Code == codeMethodNotFound || unknownWords.MatchString(a.rpc.Message)) {
		return true
	}
	switch a.status {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}

// origin names who answers: host and port, or the socket; empty for a process, each of which is its own.
func (c *conversation) origin() string {
	switch {
	case c.target.Command != nil:
		return ""
	case c.url.Scheme == "unix":
		return c.url.Path
	}
	address, err := dialAddress(c.url)
	if err != nil {
		return "" // not to be: it has been dialled
	}
	return address
}

// fail makes a step of a well-formed answer a failed one.
func (c *conversation) fail(a *answer, class Class, format string, args ...any) {
	c.failWith(a, problem{class: class, message: c.words(format, args...)})
}

// failWith makes a step a failed one with a code.
func (c *conversation) failWith(a *answer, p problem) {
	p.message = c.text(p.message, MaxMessage)
	a.problem = &p
	step := &c.result.Steps[a.step]
	step.Class, step.Code, step.Message = p.class, p.code, p.message
}

// take reads an answer. It leaves a problem in a when the answer is not what the family answers.
func (c *conversation) take(p *preset, call *call, a *answer, s *sighting) {
	if remark, ok := call.Statuses[a.status]; ok && call.Get != "" && remark.Class != "" {
		c.remarkOn(a, finding{class: remark.Class, message: remark.Note}, s)
		if a.problem != nil {
			return
		}
	}
	if a.result == nil {
		return // a document of which only the status counts
	}
	d := newTree(a.result)
	if err := call.check(d); err != nil {
		c.fail(a, ClassAssertionFailed, "%s", err)
		return
	}
	c.takeChain(p, call, a, d, s)
	if a.problem == nil {
		c.takeHead(call, a, d, s)
	}
	if a.problem == nil {
		c.takeTags(call, a, d, s)
		c.takeSync(call, a, d, s)
		c.takeRest(call, d, s)
	}
}

// check reports what an answer lacks that every answer of the family has.
func (c *call) check(d *tree) error {
	for _, v := range c.Must {
		if err := d.shaped(v); err != nil {
			if _, missing := errors.AsType[absent](err); missing {
				return err
			}
			return fmt.Errorf("%s is %w", v.where(), err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.Equal)) {
		want := c.Equal[path]
		got, ok := d.at(splitPath(path))
		switch {
		case !ok:
			return absent{placeWords(splitPath(path))}
		case string(got) != string(want):
			return fmt.Errorf("%s is %s, not %s", placeWords(splitPath(path)), clip(string(got), 100), want)
		}
	}
	return nil
}

// takeChain reads which chain it is, and compares it with the one it must be.
func (c *conversation) takeChain(p *preset, call *call, a *answer, d *tree, s *sighting) {
	if call.Read.Chain.isZero() {
		return
	}
	raw, err := d.text(call.Read.Chain)
	if _, missing := errors.AsType[absent](err); missing {
		return
	}
	if err != nil {
		c.fail(a, ClassAssertionFailed, "the chain id is %s", err)
		return
	}
	id := c.text(p.canonical(raw), maxFact)
	c.result.Facts.ChainID, s.head.Chain = id, id
	want := c.target.Options.Chain.ID
	if want != "" && !strings.EqualFold(p.canonical(want), id) {
		c.fail(a, ClassWrongChain, "serves chain %s, not %s", p.nameOf(id), p.nameOf(p.canonical(want)))
		return
	}
	if before := c.target.Memory.Head; want == "" && before != nil && before.Chain != "" && before.Chain != id {
		c.warn(call.name(), ClassWrongChain, 0, "serves chain %s, at the check before it was %s", p.nameOf(id), p.nameOf(before.Chain))
	}
}

// takeHead reads the newest block.
func (c *conversation) takeHead(call *call, a *answer, d *tree, s *sighting) {
	r := call.Read
	if r.Height.isZero() {
		return
	}
	if isNull(a.result) && call.Need != needMust {
		c.fail(a, ClassAssertionFailed, "there is no newest block: null")
		return
	}
	height, err := d.height(r.Height)
	if _, missing := errors.AsType[absent](err); missing {
		return
	}
	if err != nil {
		c.fail(a, ClassAssertionFailed, "the height is %s", err)
		return
	}
	step := c.result.Steps[a.step]
	asked := c.started.Add(step.Start).Round(0) // without the monotonic clock: it is compared with times from elsewhere
	head := Head{Origin: c.origin(), Chain: s.head.Chain, Height: height, Asked: asked, Seen: asked.Add(step.Latency)}
	note := func(v value, read func(value) error) {
		if v.isZero() {
			return
		}
		err := read(v)
		if _, missing := errors.AsType[absent](err); err != nil && !missing {
			c.warn(call.name(), ClassAssertionFailed, 0, "%s is %s", v.where(), err)
		}
	}
	text := func(into *string) func(value) error {
		return func(v value) error {
			s, err := d.text(v)
			*into = c.text(s, maxFact)
			return err
		}
	}
	note(r.Hash, text(&head.Hash))
	note(r.Parent, text(&head.Parent))
	note(r.Time, func(v value) (err error) {
		head.Time, err = d.time(v)
		return err
	})
	s.head, s.headStep = head, a.step
	facts := &c.result.Facts
	facts.Height, facts.HeadHash, facts.HeadTime = &height, head.Hash, nil
	if !head.Time.IsZero() {
		facts.HeadTime = &head.Time
	}
}

// takeTags reads the last final and the last safe block. A chain without them is none the worse.
func (c *conversation) takeTags(call *call, a *answer, d *tree, s *sighting) {
	for _, tag := range []struct {
		v    value
		into **uint64
	}{{call.Read.Finalized, &s.finalized}, {call.Read.Safe, &s.safe}} {
		if tag.v.isZero() {
			continue
		}
		if n, err := d.height(tag.v); err == nil {
			*tag.into = &n
		}
	}
	if !call.Read.Finalized.isZero() && s.finalized != nil {
		c.result.Facts.Finalized, s.finalStep = s.finalized, a.step
	}
}

// takeSync reads what the node says about its own progress, and whatever else its preset finds wrong.
func (c *conversation) takeSync(call *call, a *answer, d *tree, s *sighting) {
	for _, way := range call.Distance {
		if blocks, ok := way.read(d, s.head); ok {
			s.distance, s.class, s.syncStep = &blocks, way.Class, a.step
			break
		}
	}
	for _, r := range call.Findings {
		wrong := r.fits(d)
		if r.Class == ClassSyncing {
			c.learnSyncing(wrong)
		}
		switch {
		case wrong && r.Sure:
			c.show(a.step, finding{class: r.Class, message: r.Note})
		case wrong:
			c.remarkOn(a, finding{class: r.Class, message: r.Note}, s)
		}
	}
}

func (c *conversation) learnSyncing(syncing bool) {
	if old := c.result.Facts.Syncing; old == nil || !*old {
		c.result.Facts.Syncing = &syncing
	}
}

// remarkOn takes in what a preset finds: catching up is judged when all is known, starting ends the check.
func (c *conversation) remarkOn(a *answer, f finding, s *sighting) {
	switch f.class {
	case ClassSyncing:
		c.learnSyncing(true)
		if s.flagged == "" {
			s.flagged, s.syncStep = f.message, a.step
		}
	case ClassStarting:
		c.failWith(a, problem{f.class, a.status, f.message})
	default:
		c.show(a.step, f)
	}
}

// takeRest reads what is told besides.
func (c *conversation) takeRest(call *call, d *tree, s *sighting) {
	r := call.Read
	for name, v := range call.Keep {
		if text, err := d.text(v); err == nil && len(text) <= maxFact && !strings.Contains(text, "$") {
			s.keep(name, text)
		}
	}
	if hash, err := d.text(r.HeadHash); !r.HeadHash.isZero() && err == nil && s.headStep >= 0 {
		s.head.Hash = c.text(hash, maxFact)
		c.result.Facts.HeadHash = s.head.Hash
	}
	if !r.Software.isZero() {
		if version, err := d.text(r.Software); err == nil {
			c.result.Facts.ServerVersion = c.text(version, maxFact)
		}
	}
	if r.Peers.isZero() {
		return
	}
	if n, err := d.number(r.Peers); err == nil && n.Sign() == 0 {
		if wants, ok := d.find(r.WantsPeers); !ok || string(wants) == "true" {
			c.warn(call.name(), ClassHeadLagging, 0, "connected to no other node")
		}
	}
}

// read returns how many blocks a node says it is from where it should be.
func (w distance) read(d *tree, head Head) (uint64, bool) {
	if !w.Behind.isZero() {
		n, err := d.height(w.Behind)
		return n, err == nil
	}
	target, err := d.height(w.Target)
	if err != nil || target == 0 { // zero is what nodes say that do not know yet
		return 0, false
	}
	at := head.Height
	if !w.At.isZero() {
		if at, err = d.height(w.At); err != nil {
			return 0, false
		}
	}
	return target - min(at, target), true
}

// fits reports whether an answer shows what r looks for.
func (r rule) fits(d *tree) bool {
	raw, ok := d.at(splitPath(r.Path))
	if !ok {
		return false
	}
	is := func(one json.RawMessage) bool { return string(one) == string(raw) }
	switch {
	case r.Present:
		return true
	case r.Busy:
		return string(raw) == "true" || raw[0] == '{'
	case r.Below != nil:
		n, err := json.Number(strings.TrimSpace(string(raw))).Float64()
		return err == nil && n < *r.Below
	case r.Is != nil:
		return slices.ContainsFunc(r.Is, is)
	default:
		return !slices.ContainsFunc(r.Not, is)
	}
}

// judgeChain judges what all calls have told together.
func (c *conversation) judgeChain(ctx context.Context, p *preset, s *sighting) *Failure {
	memory := &c.result.Memory
	memory.Since = nil
	if c.target.Options.Chain.ID != "" && s.head.Chain == "" {
		c.warn(lastStep(c.result.Steps), ClassWrongChain, 0, "does not say which chain it serves")
	}
	limits := limitsOf(p, s.head.Chain, c.target.Options.Chain, c.target.Memory.Block)
	if f := limits.catchingUp(s, p.Unit); f != nil {
		c.show(s.syncStep, *f)
	}
	if s.headStep < 0 {
		if c.soft != nil {
			return nil
		}
		a := answer{step: len(c.result.Steps) - 1}
		c.fail(&a, ClassAssertionFailed, "tells no height")
		return c.failure(a)
	}
	v := view{head: s.head, before: c.target.Memory, limits: limits, unit: p.Unit}.among(c.target.Peers)
	v.head.Mark = c.askLandmark(ctx, p, v)
	j := v.judge()
	for _, f := range j.findings {
		c.show(s.headStep, f)
	}
	findings, finalized := v.finality(s.finalized, s.safe)
	for _, f := range findings {
		c.show(s.finalStep, f)
	}
	c.result.Facts.LagBlocks = j.lag
	*memory = j.memory
	memory.Finalized = finalized
	return nil
}

// catchingUp judges what a node says of its own progress. A distance counts for more than a flag: some nodes never say
// that they are done. That they say nothing is never a sign of health.
func (l chainLimits) catchingUp(s *sighting, unit string) *finding {
	class := s.class
	if class == "" {
		class = ClassSyncing
	}
	if s.distance == nil {
		if s.flagged == "" {
			return nil
		}
		f := found(class, "%s", s.flagged)
		f.warning = l.idle
		return &f
	}
	n := *s.distance
	f := found(class, "%d %s behind by its own account", n, plural(n, unit))
	switch l.severity(n) {
	case ClassHeadBehind:
		f.class = ClassHeadBehind
	case "":
		return nil
	}
	return &f
}

// show records what a step shows. The worst finding decides; of equals the first.
func (c *conversation) show(i int, f finding) {
	step := &c.result.Steps[i]
	message := c.words("%s", f.message)
	if f.warning {
		c.warn(step.Name, f.class, f.code, "%s", message)
		return
	}
	worse := c.soft == nil || f.class.Verdict() == Down && c.soft.Class.Verdict() != Down
	switch {
	case step.Class == "":
		step.Class, step.Code, step.Message = f.class, f.code, message
	case worse:
		c.warn(step.Name, step.Class, step.Code, "%s", step.Message)
		step.Class, step.Code, step.Message = f.class, f.code, message
	default:
		c.warn(step.Name, f.class, f.code, "%s", message)
	}
	if worse {
		c.soft = &Failure{Step: step.Name, Class: f.class, Code: f.code, Message: message}
	}
}

// stillStarting remembers since when a node is starting, and loses patience with one that never ends to.
func (c *conversation) stillStarting(p *preset, f *Failure) *Failure {
	memory := &c.result.Memory
	if f.Class != ClassStarting {
		memory.Since = nil
		return f
	}
	if memory.Since == nil {
		since := c.started.Round(0)
		memory.Since = &since
	}
	took := c.started.Sub(*memory.Since)
	if took <= p.Grace.duration() {
		return f
	}
	f.Class = ClassRPCError
	f.Message = c.words("still starting after %s: %s", inWords(took), f.Message)
	step := &c.result.Steps[len(c.result.Steps)-1]
	step.Class, step.Message = f.Class, f.Message
	return f
}

// familyProblem reads an error by the table of a family; nil when the table does not know it.
func (c *conversation) familyProblem(p *preset, e *rpcError) *problem {
	message := e.Message
	if p.TextInData {
		if words := dataWords(e.Data); words != "" {
			message = strings.TrimPrefix(message+": "+words, ": ")
		}
	}
	rule := p.errorRule(e)
	if rule == nil {
		if p.TextInData && !quotaWords(message) && message != e.Message {
			return &problem{ClassRPCError, e.Code, message}
		}
		return nil
	}
	if rule.Note != "" {
		message = rule.Note + ": " + message
	}
	class := rule.Class
	switch class {
	case ClassAuthRequired:
		if c.target.hasCredentials() {
			class = ClassCredentialRejected
		}
	case ClassHeadLagging:
		if n, err := newTree(e.raw).height(rule.Data); err == nil {
			class = behindBy(p, c.target, n)
		}
	}
	return &problem{class, e.Code, message}
}

// behindBy names how bad it is that a node says it is n blocks behind.
func behindBy(p *preset, t Target, n uint64) Class {
	limits := limitsOf(p, p.canonical(t.Options.Chain.ID), t.Options.Chain, t.Memory.Block)
	if class := limits.severity(n); class != "" {
		return class
	}
	return ClassHeadLagging
}

// errorRule returns the first rule that fits an error; nil when none does.
func (p *preset) errorRule(e *rpcError) *errorRule {
	text := strings.ToLower(e.Message + " " + string(e.Data[:min(len(e.Data), maxErrorText)]) + " " + string(e.raw[:min(len(e.raw), maxErrorText)]))
	for i, r := range p.Errors {
		inRange := len(r.Range) == 0 || e.Code >= r.Range[0] && e.Code <= r.Range[1]
		known := len(r.Codes) == 0 || slices.Contains(r.Codes, e.Code)
		said := len(r.Words) == 0 || slices.ContainsFunc(r.Words, func(w string) bool { return strings.Contains(text, w) })
		if inRange && known && said {
			return &p.Errors[i]
		}
	}
	return nil
}

// dataWords returns the data of an error when it is text.
func dataWords(data json.RawMessage) string {
	var s string
	_ = json.Unmarshal(data, &s) // anything but a string has no words
	return clip(s, maxErrorText)
}
