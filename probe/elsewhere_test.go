package probe_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// A client certificate tells who we are: it is for the origin that the target names, like every credential.
func TestTheClientCertificateStaysAtHome(t *testing.T) {
	t.Parallel()
	pair, mine := probetest.SelfSigned(t, probetest.Certificate{}), probetest.SelfSigned(t, probetest.Certificate{Client: true})
	serve := func(handler http.HandlerFunc) *httptest.Server {
		s := httptest.NewUnstartedServer(handler)
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair.TLS}, ClientAuth: tls.RequestClientCert}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	var asked, shown atomic.Int64
	other := serve(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		shown.Add(int64(len(r.TLS.PeerCertificates)))
		w.WriteHeader(http.StatusNotFound)
	})
	var recognised atomic.Int64
	home := serve(func(w http.ResponseWriter, r *http.Request) {
		recognised.Add(int64(len(r.TLS.PeerCertificates)))
		if !strings.HasSuffix(r.URL.Path, ".json") {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprintf(w, `{"name": "a", "skills": [], "url": %q}`, other.URL)
	})
	options := probe.Options{TLS: probe.TLS{CA: pair.CertPEM, ClientCert: mine.CertPEM, ClientKey: mine.KeyPEM}}

	r := local().Probe(t.Context(), probe.Target{Kind: probe.KindA2A, URL: home.URL, Options: options})
	if asked.Load() == 0 || shown.Load() > 0 || recognised.Load() == 0 {
		t.Errorf("the agent's other origin was asked %d times and shown %d certificates, home %d: %+v", asked.Load(), shown.Load(), recognised.Load(), r.Failure)
	}
	asked.Store(0)
	r = local().Probe(t.Context(), probe.Target{Kind: probe.KindJSONRPC, Method: "m", URL: home.URL, Options: options})
	if asked.Load() > 0 || r.Failure == nil || r.Failure.Class != probe.ClassRedirect {
		t.Errorf("the redirect to another port was followed %d times: %+v", asked.Load(), r.Failure)
	}
}
