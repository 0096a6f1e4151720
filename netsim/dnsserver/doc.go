// Package dnsserver is a name server for tests, spoken to by Go's real resolver: it answers from plain maps, and it
// can be told to be silent, slow, wrong or lying, by name and by type.
//
//	srv := dnsserver.New(dnsserver.Zone{
//		"app.example.":   dnsserver.Addr("192.0.2.1", "2001:db8::1"),
//		"www.example.":   {CNAME: "app.example."},
//		"mail.example.":  {MX: []net.MX{{Host: "mx.example.", Pref: 10}}},
//	})
//	srv.Start(packetConn, listener)               // any net.PacketConn, any net.Listener, either may be nil
//	defer srv.Close()
//	srv.On("app.example.", dnsserver.AAAA, dnsserver.Silent) // A is answered, AAAA never
//
//	r := dnsserver.Resolver(host.DialContext, "192.0.2.53")
//	ips, err := r.LookupNetIP(ctx, "ip", "app.example.")     // after 10 s, as in golang/go#43398
//
// [Resolver] makes a *net.Resolver that behaves the same on every machine: its servers, time-out and attempts are not
// those of the machine's own resolv.conf. What does leak in, because package net leaves no way around it:
//
//   - Names without a dot at the end are tried with the machine's search domains. Use rooted names ("app.example.").
//   - Names in the machine's /etc/hosts are answered from there.
//   - DNSError.Server, and with it the text of an error, names the machine's own server.
//   - Addresses of both families are sorted by what the machine itself can reach (RFC 6724). Ask for one family with
//     LookupNetIP(ctx, "ip4", name) where the order matters.
//   - "options single-request" asks for A and AAAA one after the other.
package dnsserver
