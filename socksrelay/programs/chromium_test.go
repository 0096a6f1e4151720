package programs

import (
	"bytes"
	"flag"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var screenshot = flag.String("screenshot", "", "where to put a picture of the status page")

// ticking is a page that asks its server again and again and says whether it answers.
const ticking = `<!doctype html><h1 id=s>starting</h1><script>
(async function loop(n){
  try{await fetch('/tick',{cache:'no-store',signal:AbortSignal.timeout(500)}).then(r=>r.text());s.textContent='alive'}
  catch(e){s.textContent='hanging: '+e.name}
  setTimeout(loop,50,n+1)
})(0)</script>`

func tickingSite() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/tick", hello)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(ticking))
	})
	return mux
}

// socks makes Chromium use the relay, for loopback addresses too.
func socks(r *relay) []string {
	return []string{"--proxy-server=socks5://" + r.socks, "--proxy-bypass-list=<-loopback>"}
}

func TestAPageHangsWhenTheHoleOpensAndComesBackWhenItCloses(t *testing.T) {
	web := httptest.NewServer(tickingSite())
	defer web.Close()
	r := start(t)
	page := browse(t, socks(r)...)
	page.open(web.URL)
	page.shows("alive")
	r.turn("hole", true)
	page.shows("hanging: TimeoutError")
	_, hits := r.hole()
	assert.Positive(t, hits)
	r.turn("hole", false)
	page.shows("alive")
}

func TestTheStatusPageSwitchesAFaultByAClick(t *testing.T) {
	web := httptest.NewServer(tickingSite())
	defer web.Close()
	r := start(t, "-fault", `{"name":"slow","phase":"data","effect":"throttle","rate":2000,"on":"down","user":"tor-2"}`,
		"-fault", `{"name":"refused","phase":"dial","effect":"answer","code":5,"destination":"127.0.0.1:9"}`)
	site := browse(t, socks(r)...)
	site.open(web.URL)
	site.shows("alive")
	page := browse(t)
	page.open("http://" + r.api + "/")
	page.shows("hole")

	const hole = `[...document.querySelectorAll('.fault')].find(f=>f.innerText.startsWith('hole'))`
	pressed := func(want string) {
		t.Helper()
		page.until("(" + hole + ").getAttribute('aria-pressed') == '" + want + "'")
	}
	pressed("false")
	page.click(hole)
	pressed("true")
	active, _ := r.hole()
	assert.True(t, active, "the click reached the relay")
	site.shows("hanging")
	page.shows("1 hit")
	picture := page.screenshot()
	drawn, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	assert.Greater(t, drawn.Bounds().Dx(), 1000)
	if *screenshot != "" {
		require.NoError(t, os.WriteFile(*screenshot, picture, 0o644))
	}
	page.click(hole)
	pressed("false")
	active, _ = r.hole()
	assert.False(t, active)
	site.shows("alive")
}
