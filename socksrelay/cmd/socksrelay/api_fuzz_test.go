package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzAPI sends any body to both calls that take one: the answer is JSON, and a refusal says why.
func FuzzAPI(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `[]`, `{"name":"hole","active":true}`, `{"name":"hole","active":null}`, "\xff", `{"name":1e999}`,
		`{"name":"x","phase":"data","effect":"slice","size":1,"pause":"1ms"}`, `{"name":"x","phase":"dial","effect":"answer","code":-1}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d := testDaemon(t)
		for _, path := range []string{"/api/switch", "/api/faults"} {
			w := ask(d, "POST", path, "127.0.0.1:1081", "application/json", string(body))
			var said struct{ Error string }
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &said), "%s", w.Body)
			if w.Code >= http.StatusBadRequest {
				assert.NotEmpty(t, said.Error)
				assert.Less(t, w.Code, http.StatusInternalServerError)
			} else {
				assert.Empty(t, said.Error)
			}
		}
	})
}

// FuzzAllow holds that a pattern allows what it spells out, and that one without a wildcard allows nothing else.
func FuzzAllow(f *testing.F) {
	f.Add("127.0.0.1:80", "127.0.0.1:81")
	f.Add("[::1]:80", "[::2]:80")
	f.Add("a.example:1", "a-example:1")
	f.Add("(?i)x:1", "X:1")
	f.Fuzz(func(t *testing.T, pattern, other string) {
		if checkAddress("allow", pattern) != nil {
			return
		}
		allowed := allowList(texts{pattern})
		for _, c := range pattern {
			if c == '*' {
				return
			}
		}
		assert.Equal(t, other == pattern, allowed(other))
		assert.True(t, allowed(pattern))
	})
}
