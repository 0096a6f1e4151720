package conditions_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// tailscale/tailscale#276: the flow of the Wi-Fi's address is dead, the phone is
// told 1 s later, and a new dial goes over LTE.
func TestWiFiLost(t *testing.T) {
	netsim.Run(t, func(t *testing.T, n *netsim.Network) {
		phone, api := n.Host("phone"), n.Host("api")
		wifi := phone.Interface("wifi", netsim.Wireless)
		phone.Interface("lte", netsim.Cellular)
		echo(t, listen(t, api, ":80"))
		old := dial(t, phone, "api:80")
		told := make(chan time.Time, 2)
		stop := phone.WatchConnectivity(time.Second, func(netsim.Connectivity) { told <- time.Now() })
		defer stop()
		<-told
		start := time.Now()
		conditions.WiFiLost(wifi)
		assert.Equal(t, time.Second, (<-told).Sub(start).Round(ms))
		assert.NoError(t, ask(dial(t, phone, "api:80"), time.Second))
		assert.ErrorIs(t, ask(old, time.Second), os.ErrDeadlineExceeded)
	}, tenms)
}
