package probe

import (
	"context"
	"net/http"
)

// judgePlain hands the body of an answer that is not JSON-RPC to the asker. Only what stands in the way of reading it,
// and a status that speaks for itself (401, 403, 429, a bot wall), is a problem here; the asker judges the rest.
func (c *conversation) judgePlain(ctx context.Context, q question, a *answer, r *reading, watch *stopwatch) {
	a.body = r.body
	if r.bad != nil {
		a.problem = c.explainBody(ctx, r.bad, watch)
		return
	}
	if a.status >= http.StatusBadRequest {
		a.words = bodyWords(r.body)
	}
	a.problem = c.statusSpeaks(q, a, r)
}

// document asks for path with GET, as a plain question; header is set beside what every request carries.
func (c *conversation) document(ctx context.Context, step, path string, header http.Header) answer {
	return c.ask(ctx, question{step: step, method: http.MethodGet, bare: true, plain: true, path: path, header: header})
}
