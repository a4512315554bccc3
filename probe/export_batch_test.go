package probe

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
)

// ReadBatch judges a body as the answer, with status 200, to a batch of n members, whose ids stand as ID1, ID2, … in it.
func ReadBatch(body []byte, n int) ([]Step, *Failure) {
	target := Target{Kind: KindJSONRPC, URL: "http://192.0.2.1/"}
	for range n {
		target.Options.Batch = append(target.Options.Batch, Call{Method: "m"})
	}
	c := &conversation{target: target, secrets: NewRedactor(target), ids: newIDSource(), limits: Limits{}.withDefaults()}
	b := c.newBatch()
	for i, m := range b.members {
		body = bytes.ReplaceAll(body, []byte("ID"+strconv.Itoa(i+1)), []byte(m.id))
	}
	a := c.begun(question{step: "m"}, newStopwatch())
	a.status, a.body, a.header = http.StatusOK, body, http.Header{"Content-Type": {"application/json"}}
	b.addSteps(c, a)
	failure := c.judgeBatch(context.Background(), b, &a)
	return c.result.Steps, failure
}
