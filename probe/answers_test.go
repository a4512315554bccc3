package probe_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

var updateAnswers = flag.Bool("update-answers", false, "write testdata/answers.golden anew")

// recorded is one answer of a real server to one of 39 shapes of requests, as testdata/answers.jsonl has it.
type recorded struct {
	Peer             string `json:"peer"`
	Case             string `json:"case"`
	Status           int    `json:"status"` // 0 when none came
	ContentType      string `json:"content_type"`
	TransferEncoding string `json:"transfer_encoding"`
	Allow            string `json:"allow"`
	WWWAuthenticate  string `json:"www_authenticate"`
	CurlError        string `json:"curl_error"`
	Body             string `json:"body"`
	TrailingNewline  bool   `json:"body_trailing_newline"`
}

// hangs reports whether nothing came for as long as somebody waited.
func (r recorded) hangs() bool { return r.Status == 0 && strings.Contains(r.CurlError, "timed out") }

// sentIDs are the ids that the recorded requests carried. An answer with the id of its request answers ours; one with
// another id, because the server changed it or could not read the request, is replayed as it is. Cases that are not
// here sent no id, or no request at all.
var sentIDs = map[string]string{
	"normal num id": `1`, "string id": `"a-1"`, "fractional id": `1.5`, "big int id 2^63": `9223372036854775808`, "exponent id 1e2": `1e2`,
	"null id": `null`, "object id": `{"a":1}`,
	"params omitted": `2`, "params null": `2`, "params object": `2`, "no jsonrpc member": `3`, "jsonrpc 1.0": `3`,
	"method not found": `4`, "rpc.discover": `4`, "bad params": `5`, "method is a number": `7`, "BOM prefix": `8`,
	"ct text/plain": `9`, "ct missing": `9`, "ct application/json-rpc": `9`, "ct json;charset=utf-8": `9`,
	"chunked request": `10`, "accept gzip": `11`, "h2c prior knowledge": `12`, "other Host header": `13`, "other Origin header": `13`,
}

// The 304 recorded answers, each given to a probe of kind jsonrpc: testdata/answers.golden holds the one verdict and class
// of each, read line by line against the order of classification (§3.2 of the facts). Answers to requests that a probe
// never makes (GET, a body that is no JSON) are there too: a proxy may make ours into one of those.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	rows := readRecorded(t)
	url := replayRecorded(t, rows)
	lines := make([]string, len(rows))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range rows {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			target := probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: url + "/" + strconv.Itoa(i), Timeout: time.Minute}
			if rows[i].hangs() {
				target.Timeout = time.Second
			}
			lines[i] = goldenLine(rows[i], ask(t, target))
		})
	}
	wait.Wait()
	got := strings.Join(lines, "\n") + "\n"
	const golden = "testdata/answers.golden"
	if *updateAnswers {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func readRecorded(t *testing.T) (rows []recorded) {
	t.Helper()
	file, err := os.ReadFile("testdata/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) != 304 {
		t.Fatalf("%d answers", len(rows))
	}
	return rows
}

var (
	anyID       = regexp.MustCompile(`rollcall-[0-9a-f]+-\d+`)
	anyDuration = regexp.MustCompile(`after [0-9.]+ m?s`)
)

// goldenLine says what became of an answer: verdict, class, code, warnings, message.
func goldenLine(row recorded, r probe.Result) string {
	var f probe.Failure
	if r.Failure != nil {
		f = *r.Failure
	}
	words := []string{string(r.Verdict)}
	if f.Class != "" {
		words = append(words, string(f.Class), strconv.Itoa(f.Code))
	}
	if len(r.Warnings) > 0 {
		words = append(words, "["+strings.ReplaceAll(warningLine(r.Warnings), "m ", "")+"]")
	}
	message := anyDuration.ReplaceAllString(anyID.ReplaceAllString(f.Message, "ID"), "after …")
	if runes := []rune(message); len(runes) > 90 {
		message = string(runes[:90]) + "…"
	}
	return strings.TrimSpace(fmt.Sprintf("%-7s  %-39s  %s  %s", row.Peer, row.Case, strings.Join(words, " "), message))
}

// replayRecorded starts a server that answers requests to /0, /1, … as was recorded, byte for byte, and returns its URL.
func replayRecorded(t *testing.T, rows []recorded) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				replayOne(conn, rows)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	return "http://" + l.Addr().String()
}

func replayOne(conn net.Conn, rows []recorded) {
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	body, _ := io.ReadAll(req.Body)
	i, err := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/"))
	if err != nil || i >= len(rows) {
		return
	}
	var sent struct{ ID json.RawMessage }
	_ = json.Unmarshal(body, &sent)
	row := rows[i]
	switch {
	case row.Status == 0 && !row.hangs():
		return // closed without a word
	case row.Status != 0:
		_, _ = conn.Write(row.wire(string(sent.ID)))
	}
	if row.CurlError != "" {
		_, _ = io.Copy(io.Discard, in) // until the probe hangs up
	}
}

// readdressed puts another id in place of the one a response carries, if that is the one given. Servers echo requests in
// the data of errors, so that the same may stand elsewhere.
func readdressed(body, old, id string) string {
	for at := 0; ; at++ {
		next := strings.Index(body[at:], `"id":`+old)
		if next < 0 {
			return body
		}
		at += next
		changed := body[:at] + `"id":` + id + body[at+len(`"id":`+old):]
		var response struct{ ID json.RawMessage }
		if json.Unmarshal([]byte(changed), &response) == nil && string(response.ID) == id {
			return changed
		}
	}
}

// wire returns the answer as it goes over the wire.
func (r recorded) wire(id string) []byte {
	body, compressed := strings.CutSuffix(r.Body, "\nContent-Encoding: gzip")
	var header strings.Builder
	fmt.Fprintf(&header, "HTTP/1.1 %d %s\r\nConnection: close\r\n", r.Status, http.StatusText(r.Status))
	for name, value := range map[string]string{"Content-Type": r.ContentType, "Allow": r.Allow, "WWW-Authenticate": r.WWWAuthenticate} {
		if value != "" {
			fmt.Fprintf(&header, "%s: %s\r\n", name, value)
		}
	}
	if sent, ok := sentIDs[r.Case]; ok {
		body = readdressed(body, sent, id)
	}
	if r.TrailingNewline {
		body += "\n"
	}
	switch {
	case r.Case == "HEAD":
		body = "" // what was recorded is the header
	case compressed: // what was recorded is the body unpacked, and the header that said so
		header.WriteString("Content-Encoding: gzip\r\n")
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, body)
		z.Close()
		body = b.String()
	}
	switch {
	case r.Status == http.StatusSwitchingProtocols:
		header.WriteString("Upgrade: websocket\r\n")
	case r.TransferEncoding == "chunked":
		header.WriteString("Transfer-Encoding: chunked\r\n")
		if body != "" {
			body = fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
		}
		body += "0\r\n\r\n"
	case r.Status != http.StatusNoContent:
		fmt.Fprintf(&header, "Content-Length: %d\r\n", len(body))
	}
	return []byte(header.String() + "\r\n" + body)
}
