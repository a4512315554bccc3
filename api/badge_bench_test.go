package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/store"
)

// BenchmarkBadge compares how many badges a second the whole server answers with how many constants of the same size and type an
// Echo handler does, which is given nothing else to do. The two take turns, a short stretch each, so that whatever else the
// machine does meets both; "ratio" is requests per second of badges to those of constants: at least 0.5 is wanted.
func BenchmarkBadge(b *testing.B) {
	d := &published{}
	d.put("a", true, store.StatusUp)
	badges := over(b, d).Handler()
	w := httptest.NewRecorder()
	badges.ServeHTTP(w, httptest.NewRequest(http.MethodGet, benchmarkBadge, nil))
	body := w.Body.Bytes()
	e := echo.New()
	e.GET("/badge/:slug/status.svg", func(c echo.Context) error { return c.Blob(http.StatusOK, "image/svg+xml; charset=utf-8", body) })

	b.Run("handler", func(b *testing.B) { compare(b, directly(badges, len(body)), directly(e, len(body))) })
	b.Run("loopback", func(b *testing.B) {
		compare(b, loopback(b, badges, len(body)), loopback(b, e, len(body)))
	})
}

const benchmarkBadge = "/badge/a/status.svg?style=flat&theme=auto"

// compare runs b.N requests of each side and reports how they compare.
func compare(b *testing.B, badge, constant func(n int)) {
	badge(100)
	constant(100)
	var took [2]time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(500, b.N-done)
		for side, ask := range []func(int){badge, constant} {
			start := time.Now()
			ask(n)
			took[side] += time.Since(start)
		}
		done += n
	}
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
	b.ReportMetric(float64(b.N)/took[0].Seconds(), "badges/s")
	b.ReportMetric(float64(b.N)/took[1].Seconds(), "constants/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
}

// directly asks a handler as net/http does, with a request and a header of its own each time, and without a network.
func directly(h http.Handler, size int) func(n int) {
	path, query, _ := strings.Cut(benchmarkBadge, "?")
	return func(n int) {
		for range n {
			w := &counting{header: http.Header{}}
			h.ServeHTTP(w, &http.Request{
				Method: http.MethodGet, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{"Accept": {"image/*"}}, RequestURI: benchmarkBadge,
				Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "a.example", Body: http.NoBody,
			})
			if w.status != http.StatusOK || w.bytes != size {
				panic("status " + strconv.Itoa(w.status))
			}
		}
	}
}

// counting is an answer that goes nowhere.
type counting struct {
	header        http.Header
	status, bytes int
}

func (w *counting) Header() http.Header { return w.header }

func (w *counting) WriteHeader(status int) { w.status = status }

func (w *counting) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return len(p), nil
}

// loopback asks a real server over one connection that is kept open.
func loopback(b *testing.B, h http.Handler, size int) func(n int) {
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	b.Cleanup(client.CloseIdleConnections)
	return func(n int) {
		for range n {
			answer, err := client.Get(server.URL + benchmarkBadge)
			if err != nil {
				b.Fatal(err)
			}
			got, err := io.Copy(io.Discard, answer.Body)
			if err != nil || int(got) != size || answer.Body.Close() != nil {
				b.Fatalf("%d bytes, %v", got, err)
			}
		}
	}
}
