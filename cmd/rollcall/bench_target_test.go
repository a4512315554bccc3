package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// targetVariable tells this test program to be the server that endpoints of a benchmark lie on, for as long as its input
// lasts. Its value is how long each answer takes.
const targetVariable = "ROLLCALL_TEST_TARGET"

func init() {
	text, ok := os.LookupEnv(targetVariable)
	if !ok {
		return
	}
	delay, err := time.ParseDuration(text)
	if err == nil {
		err = (&targetServer{delay: delay}).serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// targetServer answers for any number of endpoints, each under an address of its own in 127.0.0.0/8: a node (eth), an MCP
// server of the session era (mcp), and something that takes requests and never answers (hang). It notes when each check
// began, and how a check of endpoint 0 is asked.
type targetServer struct {
	delay time.Duration

	mu       sync.Mutex
	arrivals []arrival // guarded by mu, in order
	from     string    // guarded by mu: the connection that last asked endpoint 0
	asked    []asked   // guarded by mu: what it asked
}

// arrival is the beginning of a check, as the target sees it.
type arrival struct {
	Endpoint int
	At       int64 // microseconds since 1970
}

// asked is one request of a check.
type asked struct {
	Method string
	Header http.Header
	Body   []byte
}

// serve prints the port and obeys lines of input: "count" prints how many checks began, "since T" those later than T,
// "conversation" the requests of the latest connection to endpoint 0.
func (s *targetServer) serve(in io.Reader, out io.Writer) error {
	// No address stands for 127.0.0.0/8 alone; loopbackOnly turns everybody else away.
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "0.0.0.0:0")
	if err != nil {
		return err
	}
	go func() {
		err := (&http.Server{Handler: s}).Serve(loopbackOnly{l})
		fmt.Fprintln(os.Stderr, "the target ends:", err)
		os.Exit(1)
	}()
	fmt.Fprintln(out, l.Addr().(*net.TCPAddr).Port)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		answer, err := json.Marshal(s.obey(lines.Text()))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", answer)
	}
	return nil
}

func (s *targetServer) obey(line string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch line {
	case "count":
		return len(s.arrivals)
	case "conversation":
		return s.asked
	}
	since, err := strconv.ParseInt(strings.TrimPrefix(line, "since "), 10, 64)
	if err != nil {
		return err.Error()
	}
	i := len(s.arrivals)
	for i > 0 && s.arrivals[i-1].At > since {
		i--
	}
	return s.arrivals[i:]
}

type loopbackOnly struct{ net.Listener }

func (l loopbackOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || c.RemoteAddr().(*net.TCPAddr).IP.IsLoopback() {
			return c, err
		}
		c.Close()
	}
}

func (s *targetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	protocol, text, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n, err := strconv.Atoi(text)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	var message struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if len(body) > 0 && json.Unmarshal(body, &message) != nil {
		http.Error(w, "not JSON-RPC", http.StatusBadRequest)
		return
	}
	s.note(n, at, message.Method, r, body)
	switch {
	case protocol == "hang":
		<-r.Context().Done()
		return
	case s.delay > 0:
		time.Sleep(s.delay)
	}
	switch protocol {
	case "eth":
		answerETH(w, message.ID, message.Method, message.Params)
	case "mcp":
		answerMCP(w, r, message.ID, message.Method)
	}
}

func (s *targetServer) note(n int, at time.Time, method string, r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == "eth_blockNumber" || method == "initialize" { // the first request of a check whose target is known
		s.arrivals = append(s.arrivals, arrival{n, at.UnixMicro()})
	}
	if n > 0 {
		return
	}
	if s.from != r.RemoteAddr {
		s.from, s.asked = r.RemoteAddr, nil
	}
	s.asked = append(s.asked, asked{r.Method, r.Header, body})
}

// answerETH is a node of Ethereum's main chain, which grows by a block every twelve seconds.
func answerETH(w http.ResponseWriter, id json.RawMessage, method string, params json.RawMessage) {
	const blockTime = 12
	height := time.Now().Unix() / blockTime
	block := func(height int64) string {
		return fmt.Sprintf(`{"number":"0x%x","hash":"0x%064x","parentHash":"0x%064x","timestamp":"0x%x"}`, height, height, height-1, height*blockTime)
	}
	result := "null"
	switch method {
	case "eth_blockNumber":
		result = fmt.Sprintf(`"0x%x"`, height)
	case "eth_chainId":
		result = `"0x1"`
	case "eth_syncing":
		result = "false"
	case "eth_getBlockByNumber":
		var tag []any
		if json.Unmarshal(params, &tag) != nil || len(tag) == 0 {
			break
		}
		behind := map[any]int64{"safe": 32, "finalized": 64}[tag[0]]
		if number, err := strconv.ParseInt(fmt.Sprint(tag[0]), 0, 64); err == nil {
			behind = height - number
		}
		result = block(height - behind)
	}
	answerJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+result+`}`)
}

// answerMCP is a server with one tool, which hands out sessions and answers as event streams.
func answerMCP(w http.ResponseWriter, r *http.Request, id json.RawMessage, method string) {
	switch {
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusOK)
	case method == "initialize":
		w.Header().Set("Mcp-Session-Id", "5f0c6a0e-5c0a-4d0b-9a52-6f1d2b3c4d5e")
		answerStream(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"target","version":"1.0.0"}}}`)
	case method == "tools/list":
		answerStream(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":{"tools":[{"name":"forecast","description":"The weather of the next days.",`+
			`"inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"Name of the city"}},"required":["city"]}}]}}`)
	case id == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		answerJSON(w, http.StatusBadRequest, `{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`)
	}
}

func answerJSON(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, text)
}

func answerStream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, "event: message\ndata: "+text+"\n\n")
}

// target is a targetServer in a process of its own.
type target struct {
	pid  int
	port string
	in   io.WriteCloser
	out  *bufio.Reader
}

// startTarget starts a target whose answers take so long. It ends with the test.
func startTarget(t testing.TB, delay time.Duration) *target {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), targetVariable+"="+delay.String())
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the test, whose end it notices
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the target ended with %v", err)
		}
	})
	p := &target{pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
	p.port = p.line(t)
	return p
}

func (p *target) line(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// url returns the address of endpoint n. Each has a host of its own, because there is a limit for each host.
func (p *target) url(protocol string, n int) string {
	return fmt.Sprintf("http://127.%d.%d.%d:%s/%s/%d", 1+n>>16, n>>8&255, n&255, p.port, protocol, n)
}

func (p *target) ask(t testing.TB, question string, answer any) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, question); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(p.line(t)), answer); err != nil {
		t.Fatal(err)
	}
}

// processorTime is what the target has used.
func (p *target) processorTime(t testing.TB) time.Duration {
	t.Helper()
	return familyTime(t, strconv.Itoa(p.pid))
}

// count returns how many checks began.
func (p *target) count(t testing.TB) (n int) {
	t.Helper()
	p.ask(t, "count", &n)
	return n
}

// since returns the checks that began after a time.
func (p *target) since(t testing.TB, at time.Time) []arrival {
	t.Helper()
	var arrivals []arrival
	p.ask(t, fmt.Sprintf("since %d", at.UnixMicro()), &arrivals)
	return arrivals
}

// conversation returns the requests of the latest check of endpoint 0.
func (p *target) conversation(t testing.TB) []asked {
	t.Helper()
	var conversation []asked
	p.ask(t, "conversation", &conversation)
	if len(conversation) == 0 {
		t.Fatal("endpoint 0 was never asked")
	}
	return conversation
}

// loop has a conversation with one endpoint after another, each on a connection of its own, by net/http alone, which reads
// the answers without looking at them. It returns how many a second, and the processor time of this process for each.
func (p *target) loop(t testing.TB, protocol string, endpoints, concurrency int, conversation []asked,
	during time.Duration) (perSecond float64, each time.Duration) {
	t.Helper()
	begin, used := time.Now(), ownProcessorTime()
	done := make([]int, concurrency)
	var loops sync.WaitGroup
	for i := range concurrency {
		loops.Go(func() {
			for n := i; time.Since(begin) < during; n += concurrency {
				if err := converse(t.Context(), p.url(protocol, n%endpoints), conversation); err != nil {
					t.Error(err)
					return
				}
				done[i]++
			}
		})
	}
	loops.Wait()
	sum := 0
	for _, n := range done {
		sum += n
	}
	return float64(sum) / time.Since(begin).Seconds(), (ownProcessorTime() - used) / time.Duration(max(1, sum))
}

// converse sends requests as they were once received, on a connection of their own.
func converse(ctx context.Context, url string, conversation []asked) error {
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	session := ""
	for _, a := range conversation {
		req, err := http.NewRequestWithContext(ctx, a.Method, url, bytes.NewReader(a.Body))
		if err != nil {
			return err
		}
		req.Header = a.Header.Clone()
		if req.Header.Get("Mcp-Session-Id") != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
	return nil
}
