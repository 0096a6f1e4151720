package socksrelay_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// FuzzSpec holds that a description either is refused or makes a fault that a relay takes, and survives being written
// down.
func FuzzSpec(f *testing.F) {
	for _, text := range []string{
		`{"name":"a","phase":"data","effect":"slice","size":1,"pause":"1s","afterbytes":5,"active":true}`,
		`{"name":"a","phase":"reply","effect":"answer","bound":"[::1%eth0]:9","code":5}`,
		`{"name":"a","phase":"accept","effect":"corrupt","size":9223372036854775807,"seed":18446744073709551615}`,
		`{"name":"\u0000","phase":"close","effect":"delay","pause":"2540400h","chance":1e-320,"nth":-1}`,
		`{"name":"a","phase":"data","effect":"throttle","rate":1,"aftertls":true,"user":"u","destination":"h:1"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s socksrelay.Spec
		if json.Unmarshal(text, &s) != nil {
			return
		}
		fault, err := s.Fault()
		if err != nil {
			assert.Nil(t, fault)
			return
		}
		r, err := socksrelay.New(socksrelay.Config{Dial: echo, Faults: []*socksrelay.Fault{fault}})
		require.NoError(t, err)
		require.NoError(t, r.Close())
		back, err := json.Marshal(s)
		require.NoError(t, err)
		var again socksrelay.Spec
		require.NoError(t, json.Unmarshal(back, &again), "%s", back)
		_, err = again.Fault()
		require.NoError(t, err)
	})
}
