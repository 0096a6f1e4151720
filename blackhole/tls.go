package blackhole

import (
	"bytes"
	"time"
)

// AfterTLSHandshake fires when the last byte of a TLS 1.2 or 1.3 handshake has passed: both ends have, or can compute,
// everything they need, and what comes next (session tickets, application data) meets the fault.
//
// TLS 1.2 shows the end of its handshake. TLS 1.3 encrypts it: the client's Finished is told by the size of its record,
// which the cipher suite fixes. A client that packs its certificate and its Finished into one record (BoringSSL does)
// is believed to have finished when the server answers that record. The trigger waits for ever on a stream that is not
// TLS from its first byte; its state then reads "not TLS". Put [Then] before it to let other bytes pass first.
func AfterTLSHandshake() Trigger { return tlsHandshake{} }

type tlsHandshake struct{}

func (tlsHandshake) Validate() error                  { return nil }
func (tlsHandshake) Switches() []*Switch              { return nil }
func (tlsHandshake) Arm(Direction, time.Time) Machine { return &tlsMachine{} }

const (
	recordChangeCipherSpec  = 20
	recordAlert             = 21
	recordHandshake         = 22
	recordApplicationData   = 23
	recordHeaderSize        = 5
	maxRecordSize           = 1<<14 + 2048
	messageServerHello      = 2
	messageHeaderSize       = 4
	serverHelloFixed        = messageHeaderSize + 2 + 32 + 1 // up to and with the length of the session id
	extensionVersions       = 43
	maxServerHelloPrefix    = 512
	versionTLS13            = 0x0304
	cipherAES256GCMSHA384   = 0x1302
	finishedRecordSHA256    = messageHeaderSize + 32 + 1 + 16
	finishedRecordSHA384    = messageHeaderSize + 48 + 1 + 16
	clientLane, serverLane  = 0, 1
	handshakeOver, notInTLS = "active", "not TLS"
)

// helloRetryRandom marks a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3).
var helloRetryRandom = []byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

// tlsMachine follows the records of both directions. It keeps record headers and the start of the ServerHello only.
type tlsMachine struct {
	Blind
	records  [2]tlsRecords
	hello    []byte // the start of the record that carries the ServerHello
	version  int    // 0 until the ServerHello is known
	finished int    // TLS 1.3: size of the record that holds a Finished alone
	ended    int    // TLS 1.2: sides whose Finished has passed
	packed   bool   // TLS 1.3: the client sent its flight as one larger record
	done     bool
	foreign  bool
}

// tlsRecords is the position in the records of one direction.
type tlsRecords struct {
	header    [recordHeaderSize]byte
	have      int // bytes of the header
	body      int // bytes of the record's body still to come
	encrypted bool
}

func (r *tlsRecords) kind() int { return int(r.header[0]) }
func (r *tlsRecords) size() int { return int(r.header[3])<<8 | int(r.header[4]) }

func (m *tlsMachine) Active(time.Time) bool { return m.done }

func (m *tlsMachine) String() string {
	switch {
	case m.done:
		return handshakeOver
	case m.foreign:
		return notInTLS
	}
	return "in the TLS handshake"
}

// Scan stops at the end of each record header and of each record, the only places where the state may change.
func (m *tlsMachine) Scan(d Direction, p []byte) int {
	if m.done || m.foreign {
		return len(p)
	}
	r := &m.records[d.lane()]
	if r.body > 0 {
		return min(r.body, len(p))
	}
	return min(recordHeaderSize-r.have, len(p))
}

func (m *tlsMachine) Free(Direction) int64 {
	if m.done || m.foreign {
		return Unbounded
	}
	return 0
}

func (m *tlsMachine) Feed(d Direction, p []byte) {
	lane := d.lane()
	r := &m.records[lane]
	for len(p) > 0 && !m.done && !m.foreign {
		if r.body > 0 {
			n := min(r.body, len(p))
			m.read(lane, p[:n])
			r.body -= n
			p = p[n:]
			if r.body == 0 {
				m.endRecord(lane)
			}
			continue
		}
		n := copy(r.header[r.have:], p)
		r.have += n
		p = p[n:]
		if r.have == recordHeaderSize {
			r.have = 0
			r.body = r.size()
			m.beginRecord(lane)
		}
	}
}

func (m *tlsMachine) beginRecord(lane int) {
	r := &m.records[lane]
	m.foreign = r.kind() < recordChangeCipherSpec || r.kind() > recordApplicationData || r.header[1] != 3 ||
		r.body == 0 || r.body > maxRecordSize
}

// Begin takes the server's answer to a packed flight for the end of the handshake.
func (m *tlsMachine) Begin(d Direction, end bool) {
	r := &m.records[serverLane]
	if m.packed && d == Down && !end && r.have == 0 && r.body == 0 {
		m.done = true
	}
}

// read keeps what is needed of the body of a record.
func (m *tlsMachine) read(lane int, p []byte) {
	if lane == serverLane && m.version == 0 && m.records[lane].kind() == recordHandshake && len(m.hello) < maxServerHelloPrefix {
		m.hello = append(m.hello, p[:min(len(p), maxServerHelloPrefix-len(m.hello))]...)
	}
}

func (m *tlsMachine) endRecord(lane int) {
	r := &m.records[lane]
	switch {
	case lane == serverLane && m.version == 0 && r.kind() == recordHandshake:
		m.readServerHello()
	case m.version == versionTLS13:
		m.endRecord13(lane)
	case r.kind() == recordChangeCipherSpec:
		r.encrypted = true
	case r.kind() == recordHandshake && r.encrypted:
		// This side's Finished. The handshake is over when the other side's has passed, too.
		r.encrypted = false
		m.ended++
		m.done = m.ended == 2
	}
}

func (m *tlsMachine) endRecord13(lane int) {
	r := &m.records[lane]
	if lane != clientLane || r.kind() != recordApplicationData {
		return
	}
	if r.size() == m.finished {
		m.done = true
		return
	}
	m.packed = m.packed || r.size() > m.finished
}

// readServerHello takes version and cipher suite from the hello, or notices that it asks for another ClientHello.
func (m *tlsMachine) readServerHello() {
	h := m.hello
	if len(h) < serverHelloFixed || h[0] != messageServerHello {
		m.hello = nil
		return
	}
	if bytes.Equal(h[6:38], helloRetryRandom) {
		m.hello = nil
		return
	}
	m.version = int(h[4])<<8 | int(h[5])
	rest := h[serverHelloFixed:]
	if id := int(h[serverHelloFixed-1]); id+5 <= len(rest) {
		rest = rest[id:]
		suite := int(rest[0])<<8 | int(rest[1])
		if hasVersion13(rest[5:]) {
			m.version = versionTLS13
			m.finished = finishedRecordSHA256
			if suite == cipherAES256GCMSHA384 {
				m.finished = finishedRecordSHA384
			}
		}
	}
	m.hello = nil
}

// hasVersion13 looks for the extension supported_versions with the value 1.3.
func hasVersion13(extensions []byte) bool {
	for len(extensions) >= 4 {
		kind := int(extensions[0])<<8 | int(extensions[1])
		size := int(extensions[2])<<8 | int(extensions[3])
		extensions = extensions[4:]
		if size > len(extensions) {
			return false
		}
		if kind == extensionVersions {
			return size == 2 && int(extensions[0])<<8|int(extensions[1]) == versionTLS13
		}
		extensions = extensions[size:]
	}
	return false
}
