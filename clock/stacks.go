package clock

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

// goroutine is one entry of the runtime's stack dump.
type goroutine struct {
	id      int64
	state   string // the runtime's wait reason, without "(durable)"
	durable bool   // blocked on something inside its bubble
	bubble  int64  // 0: in none
	frames  []frame
	creator frame
	stack   string // everything below the header
}

type frame struct {
	function, file string
	line           int
}

func (f frame) String() string {
	if f.file == "" {
		return f.function
	}
	return fmt.Sprintf("%s (%s:%d)", f.function, f.file, f.line)
}

// goroutines is what lives in one bubble. It stops the world for a moment.
func goroutines(bubble int64) []goroutine {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var in []goroutine
	for dump := range strings.SplitSeq(string(buf), "\n\n") {
		if g, ok := parseGoroutine(dump); ok && g.bubble == bubble {
			in = append(in, g)
		}
	}
	return in
}

// parseGoroutine reads one entry:
//
//	goroutine 12 [chan receive (durable), 2 minutes, synctest bubble 3]:
//	pkg.function(0xc000012345, ...)
//		/path/file.go:17 +0x1d
//	created by pkg.other in goroutine 11
//		/path/file.go:12 +0x2e
func parseGoroutine(dump string) (g goroutine, ok bool) {
	header, rest, _ := strings.Cut(strings.TrimSpace(dump), "\n")
	if g.id, g.state, g.bubble, ok = parseHeader(header); !ok {
		return g, false
	}
	g.state = strings.TrimSuffix(g.state, " (scan)")
	g.state, g.durable = strings.CutSuffix(g.state, " (durable)")
	g.stack = rest
	lines := strings.Split(rest, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		call, at := lines[i], lines[i+1]
		if !strings.HasPrefix(at, "\t") {
			i-- // "...N frames elided..." has no place of its own
			continue
		}
		var f frame
		place, _, _ := strings.Cut(strings.TrimSpace(at), " ")
		if c := strings.LastIndexByte(place, ':'); c >= 0 {
			f.file = place[:c]
			f.line, _ = strconv.Atoi(place[c+1:])
		}
		if by, found := strings.CutPrefix(call, "created by "); found {
			f.function, _, _ = strings.Cut(by, " in goroutine ")
			g.creator = f
			continue
		}
		f.function = call
		if p := strings.LastIndexByte(call, '('); p > 0 {
			f.function = call[:p]
		}
		g.frames = append(g.frames, f)
	}
	return g, true
}

func parseHeader(header string) (id int64, state string, bubble int64, ok bool) {
	rest, found := strings.CutPrefix(header, "goroutine ")
	if !found {
		return 0, "", 0, false
	}
	number, rest, _ := strings.Cut(rest, " ")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, "", 0, false
	}
	_, rest, _ = strings.Cut(rest, "[")
	rest, _, found = strings.Cut(rest, "]")
	if !found {
		return 0, "", 0, false
	}
	for i, part := range strings.Split(rest, ", ") {
		if i == 0 {
			state = part
		} else if n, found := strings.CutPrefix(part, "synctest bubble "); found {
			bubble, _ = strconv.ParseInt(n, 10, 64)
		}
	}
	return id, state, bubble, true
}

// self is the caller's own goroutine and bubble, from the first line of its stack.
func self() (id, bubble int64) {
	var buf [128]byte
	header, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), "\n")
	id, _, bubble, _ = parseHeader(header)
	return id, bubble
}

// InBubble reports whether the caller runs in a synctest bubble, that is, whether package time is virtual for it. It
// costs about a microsecond.
func InBubble() bool {
	_, bubble := self()
	return bubble != 0
}

// active reports whether the goroutine runs or could run: what it is doing now is not what it waits for.
func (g goroutine) active() bool {
	switch g.state {
	case "running", "runnable", "preempted", "copystack", "idle", "dead", "waiting":
		return true
	}
	return strings.HasPrefix(g.state, "GC ") || strings.Contains(g.state, "garbage collection") ||
		strings.HasPrefix(g.state, "stopping the world") || strings.HasPrefix(g.state, "trace ")
}

// where is the first frame that is not part of the standard library's machinery of waiting.
func (g goroutine) where() frame {
	for _, f := range g.frames {
		if !machinery(f.function) {
			return f
		}
	}
	return g.creator
}

// caller is the frame that a reader knows best: the innermost one of a test, or else of the program, that is, neither
// of the standard library nor of the packages that simulate.
func (g goroutine) caller() (by frame) {
	for _, f := range g.frames {
		switch {
		case f.file == "" || strings.HasPrefix(f.file, stdlib) || simulates(f.function):
		case strings.HasSuffix(f.file, "_test.go"):
			return f
		case by.function == "":
			by = f
		}
	}
	return by
}

// stdlib is where the standard library's sources lie, as stacks have it.
var stdlib = func() string {
	pc := reflect.ValueOf(strings.Cut).Pointer()
	file, _ := runtime.FuncForPC(pc).FileLine(pc)
	return strings.TrimSuffix(file, "strings/strings.go")
}()

func simulates(function string) bool {
	rest, ours := strings.CutPrefix(function, "github.com/seed-5a7f77c4/deadair/")
	if !ours {
		return false
	}
	for _, p := range []string{"clock.", "netsim.", "netsim/dnsserver.", "blackhole.", "socksrelay."} {
		if strings.HasPrefix(rest, p) {
			return true
		}
	}
	return false
}

func machinery(function string) bool {
	for _, p := range []string{"runtime.", "runtime/", "sync.", "sync/", "internal/", "net.", "syscall.", "os.", "time.", "golang.org/x/sys/"} {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return false
}

// list names goroutines, one line each; those that wait at the same place for the same thing are counted.
func list(gs []goroutine) string {
	const most = 20
	count := make(map[string]int)
	var lines []string
	for _, g := range gs {
		line := fmt.Sprintf("%v [%s]", g.where(), g.state)
		if by := g.caller(); by != g.where() && by.function != "" {
			line += fmt.Sprintf(", called by %v", by)
		}
		if g.creator.function != "" {
			line += fmt.Sprintf(", started by %v", g.creator)
		}
		if count[line]++; count[line] == 1 {
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	for i, line := range lines {
		if i == most {
			fmt.Fprintf(&b, "\n  … and %d other places", len(lines)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %d × %s", count[line], line)
	}
	return b.String()
}
