package dnsserver

import (
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Whatever comes, the server does not fall over, and what it sends is a message that belongs to the query.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"app.example.", "big.example.", "nobody."} {
		for _, t := range []Type{A, TXT, Any} {
			m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: t, Class: dnsmessage.ClassINET}}}
			query, err := m.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(query, true)
			f.Add(query[:len(query)-3], false)
		}
	}
	big := make([]string, 400)
	for i := range big {
		big[i] = string(make([]byte, 600))
	}
	srv := New(Zone{"app.example.": Addr("192.0.2.1", "2001:db8::1"), "big.example.": {TXT: big}})
	srv.On("*.lie.", Any, Hijack("192.0.2.1"))
	f.Fuzz(func(t *testing.T, query []byte, stream bool) {
		r := srv.answer(query, stream)
		if r.message == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(r.message); err != nil {
			t.Fatalf("%v in the answer to %x", err, query)
		}
		if !m.Response || len(m.Questions) != 1 || len(r.message) > 65535 {
			t.Fatalf("%v is no answer to %x", m.GoString(), query)
		}
	})
}
