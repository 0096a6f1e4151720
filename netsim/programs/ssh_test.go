package programs

import (
	"crypto/ed25519"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/seed-5a7f77c4/deadair/netsim"
)

// shell runs a command over SSH, which echoes what it is given, until the
// connection is reset.
func shell(t *testing.T, n *netsim.Network) {
	app, host := n.Host("app"), n.Host("server")
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	require.NoError(t, err)
	conf := &ssh.ServerConfig{NoClientAuth: true}
	conf.AddHostKey(signer)
	l := listen(t, host, ":22")
	served := make(chan struct{})
	go func() {
		defer close(served)
		raw, err := l.Accept()
		if err != nil {
			return
		}
		_, chans, reqs, err := ssh.NewServerConn(raw, conf)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(reqs)
		for nc := range chans {
			ch, reqs, err := nc.Accept()
			if err != nil {
				return
			}
			go func() {
				for r := range reqs {
					r.Reply(true, nil)
				}
			}()
			io.Copy(ch, ch)
			ch.SendRequest("exit-status", false, make([]byte, 4))
			ch.Close()
		}
	}()
	raw, err := app.Dial("tcp", "server:22")
	require.NoError(t, err)
	sc, chans, reqs, err := ssh.NewClientConn(raw, "server:22", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())})
	require.NoError(t, err)
	client := ssh.NewClient(sc, chans, reqs)
	s, err := client.NewSession()
	require.NoError(t, err)
	in, err := s.StdinPipe()
	require.NoError(t, err)
	out, err := s.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start("cat"))
	go func() {
		in.Write(make([]byte, 10_000))
		in.Close()
	}()
	got, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Len(t, got, 10_000)
	require.NoError(t, s.Wait())
	time.Sleep(time.Second)
	n.Link(app, host).Reset()
	assert.Error(t, client.Wait())
	l.Close()
	<-served
}

func TestSSH(t *testing.T) { netsim.Run(t, shell, rough) }
