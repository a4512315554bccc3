package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Check is a check as it stands in JSON, in the REST API and in what `rollcall check --json` prints.
type Check struct {
	ID           string        `json:"id,omitempty"`       // absent when the check is not kept
	Endpoint     string        `json:"endpoint,omitempty"` // its slug; absent likewise
	Location     string        `json:"location"`
	ScheduledAt  Time          `json:"scheduled_at"`
	StartedAt    Time          `json:"started_at"`
	DurationMS   float64       `json:"duration_ms"`
	Kind         probe.Kind    `json:"kind"`
	Era          probe.Era     `json:"era,omitempty"`
	Verdict      probe.Verdict `json:"verdict"`
	FailedStep   string        `json:"failed_step"`
	Class        probe.Class   `json:"class"`
	Code         int           `json:"code"`
	Message      string        `json:"message"`
	RetryAfterMS float64       `json:"retry_after_ms,omitempty"`
	Steps        []Step        `json:"steps"`
	Warnings     []Warning     `json:"warnings"`
	Facts        Facts         `json:"facts"`
	Transcript   []Message     `json:"transcript,omitempty"`
}

// Step is one request of a check.
type Step struct {
	Name       string      `json:"name"`
	Method     string      `json:"method"`
	StartMS    float64     `json:"start_ms"` // after the check began
	LatencyMS  float64     `json:"latency_ms"`
	HTTPStatus int         `json:"http_status"`
	Class      probe.Class `json:"class"`
	Code       int         `json:"code"`
	Message    string      `json:"message"`
	BytesIn    int64       `json:"bytes_in"`
	BytesOut   int64       `json:"bytes_out"`
	Phases     Phases      `json:"phases"`
}

// Phases splits the latency of a step; a phase that did not happen is absent.
type Phases struct {
	DNSMS       float64 `json:"dns_ms,omitempty"`
	ConnectMS   float64 `json:"connect_ms,omitempty"`
	TLSMS       float64 `json:"tls_ms,omitempty"`
	FirstByteMS float64 `json:"first_byte_ms,omitempty"`
	BodyMS      float64 `json:"body_ms,omitempty"`
}

// Warning is something odd that did not decide the verdict.
type Warning struct {
	Step    string      `json:"step"`
	Class   probe.Class `json:"class"`
	Code    int         `json:"code"`
	Message string      `json:"message"`
}

// Facts are what an endpoint says of itself; what it did not say is absent.
type Facts struct {
	ProtocolVersion   string    `json:"protocol_version,omitempty"`
	SupportedVersions []string  `json:"supported_versions,omitempty"`
	Era               probe.Era `json:"era,omitempty"`
	ServerName        string    `json:"server_name,omitempty"`
	ServerVersion     string    `json:"server_version,omitempty"`
	Tools             *int      `json:"tools,omitempty"`
	Prompts           *int      `json:"prompts,omitempty"`
	Resources         *int      `json:"resources,omitempty"`
	Contract          string    `json:"contract,omitempty"`
	Height            *uint64   `json:"height,omitempty"`
	HeadHash          string    `json:"head_hash,omitempty"`
	HeadTime          *Time     `json:"head_time,omitempty"`
	LagBlocks         *int64    `json:"lag_blocks,omitempty"`
	Finalized         *uint64   `json:"finalized,omitempty"`
	Syncing           *bool     `json:"syncing,omitempty"`
	ChainID           string    `json:"chain_id,omitempty"`
	TLSExpiresAt      *Time     `json:"tls_expires_at,omitempty"`
	RemoteAddr        string    `json:"remote_addr,omitempty"`
}

// Message is one message of the conversation, where a transcript was asked for.
type Message struct {
	Step    string  `json:"step"`
	Sent    bool    `json:"sent"`
	AtMS    float64 `json:"at_ms"`
	Head    string  `json:"head"`
	Body    string  `json:"body"`
	Clipped bool    `json:"clipped,omitempty"`
}

// CheckJSON returns c as it stands in JSON.
func CheckJSON(c store.Check) Check {
	r := c.Result
	check := Check{
		ID:           c.ID,
		Endpoint:     c.Slug,
		Location:     c.Location,
		ScheduledAt:  Time{c.ScheduledAt},
		StartedAt:    Time{r.StartedAt},
		DurationMS:   ms(r.Duration),
		Kind:         r.Kind,
		Era:          r.Era,
		Verdict:      r.Verdict,
		RetryAfterMS: ms(r.RetryAfter),
		Steps:        make([]Step, 0, len(r.Steps)),
		Warnings:     make([]Warning, 0, len(r.Warnings)),
		Facts:        factsJSON(r.Facts),
	}
	if f := r.Failure; f != nil {
		check.FailedStep, check.Class, check.Code, check.Message = f.Step, f.Class, f.Code, f.Message
	}
	for _, step := range r.Steps {
		check.Steps = append(check.Steps, stepJSON(step))
	}
	for _, w := range r.Warnings {
		check.Warnings = append(check.Warnings, Warning(w))
	}
	messages := r.Transcript
	if kept, err := c.Transcript.Messages(); err == nil && len(kept) > 0 {
		messages = kept
	}
	for _, m := range messages {
		check.Transcript = append(check.Transcript, Message{m.Step, m.Sent, ms(m.At), m.Head, m.Body, m.Clipped})
	}
	return check
}

func stepJSON(s probe.Step) Step {
	return Step{
		Name:       s.Name,
		Method:     s.Method,
		StartMS:    ms(s.Start),
		LatencyMS:  ms(s.Latency),
		HTTPStatus: s.HTTPStatus,
		Class:      s.Class,
		Code:       s.Code,
		Message:    s.Message,
		BytesIn:    s.BytesIn,
		BytesOut:   s.BytesOut,
		Phases: Phases{
			DNSMS:       ms(s.Phases.DNS),
			ConnectMS:   ms(s.Phases.Connect),
			TLSMS:       ms(s.Phases.TLS),
			FirstByteMS: ms(s.Phases.FirstByte),
			BodyMS:      ms(s.Phases.Body),
		},
	}
}

func factsJSON(f probe.Facts) Facts {
	return Facts{
		ProtocolVersion:   f.ProtocolVersion,
		SupportedVersions: f.SupportedVersions,
		Era:               f.Era,
		ServerName:        f.ServerName,
		ServerVersion:     f.ServerVersion,
		Tools:             f.Tools,
		Prompts:           f.Prompts,
		Resources:         f.Resources,
		Contract:          f.Contract,
		Height:            f.Height,
		HeadHash:          f.HeadHash,
		HeadTime:          timeOf(f.HeadTime),
		LagBlocks:         f.LagBlocks,
		Finalized:         f.Finalized,
		Syncing:           f.Syncing,
		ChainID:           f.ChainID,
		TLSExpiresAt:      timeOf(f.TLSExpiresAt),
		RemoteAddr:        f.RemoteAddr,
	}
}

// checkOf returns the check that a path names, with its transcript. store.ErrNotFound when it is none of the endpoint's.
func (s *Server) checkOf(c echo.Context) (store.Overview, store.Check, error) {
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return store.Overview{}, store.Check{}, err
	}
	check, err := s.cfg.Store.Check(ctx, c.Param("id"))
	if err != nil {
		return store.Overview{}, store.Check{}, err
	}
	if check.EndpointID != o.ID {
		return store.Overview{}, store.Check{}, store.ErrNotFound
	}
	return o, check, nil
}

func (s *Server) getCheck(c echo.Context) error {
	_, check, err := s.checkOf(c)
	if err != nil {
		return err
	}
	return ok(c, CheckJSON(check))
}

func (s *Server) listChecks(c echo.Context) error {
	q := queryOf(c)
	f := store.CheckFilter{
		Since:   q.time("since"),
		Until:   q.time("until"),
		Verdict: choice(q, "verdict", probe.Verdicts()),
		Limit:   q.limit(),
		Cursor:  q.text("cursor"),
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		q.mistake("until", "must be later than since")
	}
	if err := q.end(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	o, err := s.cfg.Store.Endpoint(ctx, c.Param("slug"))
	if err != nil {
		return err
	}
	f.EndpointID = o.ID
	page, err := s.cfg.Store.Checks(ctx, f)
	if err != nil {
		return err
	}
	return ok(c, listOf(page.Items, page.Next, func(check store.Check) Check {
		check.Slug = o.Slug
		return CheckJSON(check)
	}))
}

// checkEndpoint probes an endpoint at once and records the check.
func (s *Server) checkEndpoint(c echo.Context) error {
	outlast(c, maxProbe)
	slug := c.Param("slug")
	check, err := s.cfg.CheckNow(c.Request().Context(), slug)
	if err != nil {
		return err
	}
	check.Slug = slug
	return ok(c, CheckJSON(check))
}

// tryTarget probes whatever the body describes, once, and keeps nothing.
func (s *Server) tryTarget(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	in := readTarget(m)
	m.rest()
	// A single probe has no period that its timeout must fit into.
	in.Schedule = new("@every " + maxProbe.String())
	in.Mistakes = *m.mistakes
	outlast(c, maxProbe)
	check, err := s.try(c.Request().Context(), "", in, nil)
	if err != nil {
		return err
	}
	return ok(c, CheckJSON(check))
}

// maxProbe is longer than any timeout an endpoint may have.
const maxProbe = 6 * time.Minute

// outlast keeps our own deadlines from cutting off an answer that takes as long as a probe, or as somebody else whom we
// ask. What is done for it takes the request's context afterwards.
func outlast(c echo.Context, d time.Duration) {
	unhurried(c)
	control, until := http.NewResponseController(c.Response()), time.Now().Add(d)
	// A server without deadlines has none to extend.
	_ = control.SetReadDeadline(until)
	_ = control.SetWriteDeadline(until)
}
