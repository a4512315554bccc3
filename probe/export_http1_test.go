package probe

import (
	"net"
	"net/http"
)

// Carrier is what a test sees of a connection of HTTP/1.1.
type Carrier interface {
	RoundTrip(req *http.Request) (*http.Response, error)
	Err() error
	Close() error
}

// NewHTTP1 returns the connection that a check without TLS has over conn.
func NewHTTP1(conn net.Conn, header int64) Carrier { return newHTTP1(conn, header) }
