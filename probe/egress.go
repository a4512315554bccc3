package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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
// answers. A network of "tcp4" or "tcp6" leaves it those of one version of IP. It fits http.Transport.DialContext. When
// none of them may be dialled the error is an *EgressError.
func (e Egress) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return e.dial(ctx, &net.Dialer{}, network, address)
}

// dial is DialContext by a dialer of the caller's.
func (e Egress) dial(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	allowed, port, err := e.addresses(ctx, network, address)
	if err != nil {
		return nil, err
	}
	var failed error
	for i, addr := range allowed {
		conn, err := dialOne(ctx, dialer, network, netip.AddrPortFrom(addr, port).String(), len(allowed)-i)
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

// addresses resolves the host of address and returns those of its addresses that may be dialled, with the port.
func (e Egress) addresses(ctx context.Context, network, address string) ([]netip.Addr, uint16, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, 0, &net.AddrError{Err: "not the number of a port", Addr: service}
	}
	version := IPVersion(strings.TrimLeft(network, "tcpud"))
	addrs, err := e.resolve(ctx, version, host)
	if err != nil {
		return nil, 0, err
	}
	allowed, err := e.allowed(host, addrs)
	return allowed, uint16(port), err
}

// resolve returns the addresses of host, those of IPv4 first: a machine without IPv6 then loses no time.
func (e Egress) resolve(ctx context.Context, version IPVersion, host string) ([]netip.Addr, error) {
	addrs, err := e.lookup(ctx, version, host)
	if err != nil {
		return nil, err
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	if version != "" {
		addrs = slices.DeleteFunc(addrs, func(a netip.Addr) bool { return a.Is4() != (version == IPv4) })
	}
	if len(addrs) == 0 {
		return nil, notFound(version, host)
	}
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return addrs, nil
}

// notFound is the error of a name without an address of the version of IP that was asked for.
func notFound(version IPVersion, host string) error {
	missing := "no address"
	if version != "" {
		missing = "no IPv" + string(version) + " address"
	}
	return &net.DNSError{Err: missing, Name: host, IsNotFound: true}
}

// maxLookup is the most that looking a name up may take. A resolver that answers at all does so within five seconds, and
// one that does not must not use up the time that belongs to the endpoint.
const maxLookup = 5 * time.Second

// lookup asks the resolver for the addresses of host, unless host is one. It may take maxLookup or half of the time that
// is left, whichever is less, so that a silent resolver is never mistaken for a silent endpoint.
func (e Egress) lookup(ctx context.Context, version IPVersion, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	var resolver Resolver = net.DefaultResolver
	if e.Resolver != nil {
		resolver = e.Resolver
	}
	patience := maxLookup
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	addrs, err := resolver.LookupNetIP(within, "ip"+string(version), host)
	silent := within.Err() != nil && ctx.Err() == nil
	found, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil:
		return addrs, nil
	case silent: // not the error itself: it is recognised as the end of the check's own time
		return nil, &net.DNSError{Err: "no answer", Name: host, IsTimeout: true}
	case isDNS && found.IsNotFound:
		return nil, notFound(version, host)
	default:
		return nil, err
	}
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
