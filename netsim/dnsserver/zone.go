package dnsserver

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Type is the type of a query.
type Type = dnsmessage.Type

// The types that a [Zone] can answer, and Any, which in a rule or a count stands for all of them.
const (
	A     = dnsmessage.TypeA
	AAAA  = dnsmessage.TypeAAAA
	CNAME = dnsmessage.TypeCNAME
	TXT   = dnsmessage.TypeTXT
	MX    = dnsmessage.TypeMX
	SRV   = dnsmessage.TypeSRV
	NS    = dnsmessage.TypeNS
	PTR   = dnsmessage.TypePTR
	Any   = dnsmessage.TypeALL
)

// Zone is what a server knows: rooted names ("app.example.") and their records. A name that is not in it does not
// exist (NXDOMAIN); a name that is, but has nothing of the type asked for, gives an empty answer.
type Zone map[string]Records

// Records are the records of one name. A CNAME is followed within the zone.
type Records struct {
	Addrs []netip.Addr // A and AAAA
	CNAME string
	TXT   []string
	MX    []net.MX
	SRV   []net.SRV
	NS    []string
	PTR   []string
}

// Addr makes records of addresses of both families. It panics if one is none.
func Addr(addrs ...string) Records {
	var r Records
	for _, a := range addrs {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			panic(fmt.Sprintf("dnsserver.Addr(%q): %v", a, err))
		}
		r.Addrs = append(r.Addrs, ip)
	}
	return r
}

// ReverseName is the name under which the PTR record of an address is kept.
func ReverseName(addr netip.Addr) string {
	var b strings.Builder
	if addr = addr.Unmap(); addr.Is4() {
		ip := addr.As4()
		fmt.Fprintf(&b, "%d.%d.%d.%d.in-addr.arpa.", ip[3], ip[2], ip[1], ip[0])
		return b.String()
	}
	ip := addr.As16()
	for i := len(ip) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%x.%x.", ip[i]&15, ip[i]>>4)
	}
	return b.String() + "ip6.arpa."
}

// canonical is the form in which names are compared: lower case, with the dot at the end.
func canonical(name string) string {
	name = strings.ToLower(name)
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	return name
}

// maxAliases ends chains of CNAMEs that go in a circle.
const maxAliases = 8

// record is one resource record of an answer.
type record struct {
	name string
	body dnsmessage.ResourceBody
}

// find gives the records for a question, aliases first, and whether the name exists.
func (z Zone) find(name string, t Type) (found []record, exists bool) {
	for range maxAliases {
		r, ok := z[name]
		if !ok {
			return found, len(found) > 0
		}
		if r.CNAME == "" || t == CNAME {
			return append(found, r.of(name, t)...), true
		}
		target := canonical(r.CNAME)
		found = append(found, record{name, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(target)}})
		name = target
	}
	return found, true
}

// of gives the records of one type.
func (r Records) of(name string, t Type) (found []record) {
	add := func(body dnsmessage.ResourceBody) { found = append(found, record{name, body}) }
	dns := func(name string) dnsmessage.Name { return dnsmessage.MustNewName(canonical(name)) }
	switch t {
	case A:
		for _, ip := range r.Addrs {
			if ip.Unmap().Is4() {
				add(&dnsmessage.AResource{A: ip.Unmap().As4()})
			}
		}
	case AAAA:
		for _, ip := range r.Addrs {
			if !ip.Unmap().Is4() {
				add(&dnsmessage.AAAAResource{AAAA: ip.As16()})
			}
		}
	case CNAME:
		if r.CNAME != "" {
			add(&dnsmessage.CNAMEResource{CNAME: dns(r.CNAME)})
		}
	case TXT:
		for _, text := range r.TXT {
			add(&dnsmessage.TXTResource{TXT: chunks(text)})
		}
	case MX:
		for _, mx := range r.MX {
			add(&dnsmessage.MXResource{Pref: mx.Pref, MX: dns(mx.Host)})
		}
	case SRV:
		for _, s := range r.SRV {
			add(&dnsmessage.SRVResource{Priority: s.Priority, Weight: s.Weight, Port: s.Port, Target: dns(s.Target)})
		}
	case NS:
		for _, ns := range r.NS {
			add(&dnsmessage.NSResource{NS: dns(ns)})
		}
	case PTR:
		for _, p := range r.PTR {
			add(&dnsmessage.PTRResource{PTR: dns(p)})
		}
	}
	return found
}

// chunks cuts a text into the strings of at most 255 bytes that a TXT record is made of.
func chunks(text string) []string {
	var parts []string
	for len(text) > 255 {
		parts = append(parts, text[:255])
		text = text[255:]
	}
	return append(parts, text)
}

// check makes a copy of the zone with canonical names, and panics on a name that no message can carry: the mistake is
// in the test's own source, and a server that kept silent about it would look like a fault.
func (z Zone) check(call string) Zone {
	checked := make(Zone, len(z))
	for name, r := range z {
		names := []string{name, r.CNAME}
		names = append(append(names, r.NS...), r.PTR...)
		for _, mx := range r.MX {
			names = append(names, mx.Host)
		}
		for _, s := range r.SRV {
			names = append(names, s.Target)
		}
		for _, n := range names {
			checkName(call, n)
		}
		for _, ip := range r.Addrs {
			if !ip.IsValid() {
				panic(fmt.Sprintf("%s: name %q has an address that is none", call, name))
			}
		}
		if _, twice := checked[canonical(name)]; twice {
			panic(fmt.Sprintf("%s: name %q is there twice", call, name))
		}
		checked[canonical(name)] = r
	}
	return checked
}

func checkName(call, name string) {
	const longest = 253 // without the dot at the end
	if name = strings.TrimSuffix(name, "."); name == "" {
		return
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || len(name) > longest {
			panic(fmt.Sprintf("%s: %q is no domain name", call, name))
		}
	}
}
