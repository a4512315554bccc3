package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Egress decides which addresses may be dialled. Its zero value allows public addresses only. What it checks is the
// address itself, after the name was resolved, and exactly that address is dialled: a name that resolves differently a
// moment later gains nothing.
type Egress struct {
	Any      bool           // every address may be dialled
	Allow    []netip.Prefix // may be dialled although they are not public
	Resolver Resolver       // nil means net.DefaultResolver
}

// Resolver finds the addresses of a host name; *net.Resolver is one. One that wants the time of its look-ups to appear
// in Phases.DNS calls the hooks of httptrace, as *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// maxDials bounds how many addresses of one name are tried: a name may have hundreds.
const maxDials = 4

// dialShare is the most that an address may take as long as there is another one to try.
const dialShare = 3 * time.Second

// EgressError says that a host leads to an address that must not be dialled. It holds no secret.
type EgressError struct {
	Host  string
	Addr  netip.Addr
	Range string // in words and as a prefix: "private range 10.0.0.0/8"
}

func (e *EgressError) Error() string {
	subject := "the address " + e.Host + " lies"
	if e.Host != e.Addr.String() {
		subject = fmt.Sprintf("%s leads to %s, which lies", e.Host, e.Addr)
	}
	allow := netip.PrefixFrom(e.Addr.WithZone(""), e.Addr.BitLen())
	return fmt.Sprintf("%s in the %s and is refused: --allow-private %s would allow it", subject, e.Range, allow)
}

// DialContext resolves the host of address ("host:port"), and dials the first of its addresses that may be dialled and
// answers. It fits http.Transport.DialContext. When none of them may be dialled the error is an *EgressError.
func (e Egress) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := e.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	allowed, err := e.allowed(host, addrs)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	var failed error
	for i, addr := range allowed {
		conn, err := dialOne(ctx, &dialer, network, net.JoinHostPort(addr.String(), port), len(allowed)-i)
		if err == nil {
			return conn, nil
		}
		failed = cmp.Or(failed, err) // the first address is the one a reader expects to read about
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// resolve returns the addresses of host, those of IPv4 first: a machine without IPv6 then loses no time.
func (e Egress) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	var resolver Resolver = net.DefaultResolver
	if e.Resolver != nil {
		resolver = e.Resolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return addrs, nil
}

// allowed returns those of the addresses that may be dialled, at most maxDials.
func (e Egress) allowed(host string, addrs []netip.Addr) ([]netip.Addr, error) {
	var allowed []netip.Addr
	var refused error
	for _, addr := range addrs {
		if where := e.refuses(addr); where != "" {
			refused = cmp.Or(refused, error(&EgressError{Host: host, Addr: addr, Range: where}))
			continue
		}
		allowed = append(allowed, addr)
	}
	if len(allowed) == 0 {
		return nil, refused
	}
	return allowed[:min(len(allowed), maxDials)], nil
}

// refuses names the range that addr lies in when it must not be dialled, and is empty when it may be.
func (e Egress) refuses(addr netip.Addr) string {
	if e.Any {
		return ""
	}
	addr = addr.WithZone("").Unmap() // a prefix contains no address with a zone
	inner := embedded(addr)
	for _, p := range e.Allow {
		if p.Contains(addr) || p.Contains(inner) {
			return ""
		}
	}
	return cmp.Or(special(inner), special(addr))
}

// dialOne dials one address, leaving time for the others that are left to try.
func dialOne(ctx context.Context, d *net.Dialer, network, address string, left int) (net.Conn, error) {
	if left > 1 {
		share := dialShare
		if deadline, ok := ctx.Deadline(); ok {
			share = min(share, time.Until(deadline)/time.Duration(left))
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, share, errors.New("time for the next address"))
		defer cancel()
	}
	return d.DialContext(ctx, network, address)
}
