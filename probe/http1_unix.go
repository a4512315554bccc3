//go:build unix

package probe

import (
	"errors"
	"net"
	"syscall"
)

// quiet reports whether an idle connection has nothing to be read, not even its end. One that is no socket of its own, as through
// a proxy with TLS, counts as quiet: a request that a closed connection loses is sent once more.
func quiet(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var one [1]byte
	var seen error
	err = raw.Read(func(fd uintptr) bool {
		_, _, seen = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		return true
	})
	return err == nil && (errors.Is(seen, syscall.EAGAIN) || errors.Is(seen, syscall.EINTR))
}
