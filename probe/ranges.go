package probe

import "net/netip"

// specialRange is a stretch of addresses that lead to something else than a public server.
type specialRange struct {
	prefix netip.Prefix
	name   string
}

// specialRanges are the addresses that are not public, after the IANA registries of special-purpose addresses, with the
// addresses at which clouds hand out the secrets of a machine. The narrow come before the wide: the first match names
// the range.
var specialRanges = []specialRange{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata range"},
	{netip.MustParsePrefix("169.254.170.2/32"), "cloud metadata range"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata range"},
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata range"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata range"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "cloud metadata range"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata range"},

	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified range"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private range"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT range"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback range"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local range"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private range"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved range"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation range"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay range"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private range"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking range"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation range"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation range"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast range"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast range"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved range"},

	{netip.MustParsePrefix("::/128"), "unspecified range"},
	{netip.MustParsePrefix("::1/128"), "loopback range"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible range"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated range"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64 range"},
	{netip.MustParsePrefix("100::/64"), "discard range"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "reserved range"},
	{netip.MustParsePrefix("2001::/32"), "Teredo range"},
	{netip.MustParsePrefix("2001::/23"), "reserved range"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation range"},
	{netip.MustParsePrefix("3fff::/20"), "documentation range"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing range"},
	{netip.MustParsePrefix("fc00::/7"), "private range"},
	{netip.MustParsePrefix("fe80::/10"), "link-local range"},
	{netip.MustParsePrefix("fec0::/10"), "site-local range"},
	{netip.MustParsePrefix("ff00::/8"), "multicast range"},
}

// special names the range that addr lies in when it is not public, and is empty when it is.
func special(addr netip.Addr) string {
	for _, r := range specialRanges {
		if r.prefix.Contains(addr) {
			return r.name + " " + r.prefix.String()
		}
	}
	return ""
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

// embedded returns the IPv4 address that an IPv6 address leads to by translation (RFC 6052, RFC 3056), or addr itself.
func embedded(addr netip.Addr) netip.Addr {
	bytes := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(bytes[12:16]))
	case sixTo4.Contains(addr):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	default:
		return addr
	}
}
