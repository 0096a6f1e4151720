package conditions_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-5a7f77c4/deadair/netsim"
	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

// A connector is the least driver of package database/sql: a statement is a byte
// and its result is the byte's echo. With a ping time-out, what the pool hands
// out has been asked first.
type connector struct {
	dialer *netsim.Dialer
	ping   time.Duration
}

func (c connector) Driver() driver.Driver { return nil }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", "db:5432")
	if err != nil {
		return nil, err
	}
	return &session{Conn: conn, ping: c.ping}, nil
}

type session struct {
	net.Conn
	ping   time.Duration
	broken bool
}

func (*session) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (*session) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (s *session) IsValid() bool                     { return !s.broken }

func (s *session) ResetSession(context.Context) error {
	if s.ping > 0 && s.exchange(time.Now().Add(s.ping)) != nil {
		return driver.ErrBadConn
	}
	return nil
}

func (s *session) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	by, _ := ctx.Deadline()
	return driver.ResultNoRows, s.exchange(by)
}

func (s *session) exchange(by time.Time) error {
	s.SetDeadline(by)
	_, err := s.Write([]byte("?"))
	if err == nil {
		_, err = s.Read(make([]byte, 1))
	}
	s.broken = err != nil
	return err
}

// pool is a pool of four idle connections to a database.
func pool(t *testing.T, app, host *netsim.Host, keepAlive, ping time.Duration) *sql.DB {
	l := listen(t, host, ":5432")
	t.Cleanup(func() { l.Close() })
	echo(t, quiet{l})
	db := sql.OpenDB(connector{&netsim.Dialer{Host: app, KeepAlive: keepAlive}, ping})
	t.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(4)
	var taken [4]*sql.Conn
	for i := range taken {
		var err error
		taken[i], err = db.Conn(t.Context())
		require.NoError(t, err)
	}
	for _, c := range taken {
		require.NoError(t, c.Close())
	}
	require.Equal(t, 4, db.Stats().Idle)
	return db
}

// query runs a statement, with a deadline unless limit is 0.
func query(db *sql.DB, limit time.Duration) (took time.Duration, err error) {
	ctx := context.Background()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	took = after(func() { _, err = db.ExecContext(ctx, "") })
	return took, err
}

// quiet accepts connections that send no keep-alive probes.
type quiet struct{ net.Listener }

func (l quiet) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		c.(*netsim.Conn).SetKeepAlive(false)
	}
	return c, err
}

// jackc/pgx#2394: of four idle connections the one is dead that is handed out
// next. A pool that asks what it hands out gets past it for the price of the
// ping's time-out and gives a healthy one, without a dial; with one that does not
// ask the query fails at its deadline, and the next one passes.
func TestSilentFlowInAPool(t *testing.T) {
	for _, tc := range []struct {
		name        string
		ping        time.Duration
		first, next time.Duration
		err         error
	}{
		{"with a ping", time.Second, time.Second + 40*ms, 40 * ms, nil},
		{"without", 0, 5 * time.Second, 20 * ms, os.ErrDeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				db := pool(t, n.Host("app"), n.Host("db"), -1, tc.ping)
				conditions.SilentFlow(n, "app>db:5432#4") // package database/sql hands out the one that came back last
				took, err := query(db, 5*time.Second)
				assert.ErrorIs(t, err, tc.err)
				assert.Equal(t, tc.first, took.Round(ms))
				took, err = query(db, 5*time.Second)
				assert.NoError(t, err)
				assert.Equal(t, tc.next, took.Round(ms))
				assert.Equal(t, 4, dials(n, 5432))
				assert.Equal(t, 3, db.Stats().Idle, "the dead one is gone")
			}, tenms)
		})
	}
}

// go-sql-driver/mysql#257: all pooled flows expire silently after 15 minutes.
func TestNATForgetsAPool(t *testing.T) {
	for _, tc := range []struct {
		name      string
		keepAlive time.Duration
		limit     time.Duration
		takes     time.Duration
		err       error
	}{
		{"a query with a deadline returns at it", -1, 3 * time.Second, 3 * time.Second, os.ErrDeadlineExceeded},
		// Linux gives up at the first retransmission that is due after its budget of 924.6 s.
		{"one without hangs for the retransmission budget", -1, 0, 945060 * ms, syscall.ETIMEDOUT},
		{"with Go's keep-alive the flows stay known", 0, 3 * time.Second, 20 * ms, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			netsim.Run(t, func(t *testing.T, n *netsim.Network) {
				app, host := n.Host("app"), n.Host("db")
				f := conditions.NATForgets(n.Link(app, host), 15*time.Minute)
				db := pool(t, app, host, tc.keepAlive, 0)
				time.Sleep(15*time.Minute + time.Second)
				if tc.err == nil {
					f.MayMiss()
				}
				for range 4 {
					took, err := query(db, tc.limit)
					assert.ErrorIs(t, err, tc.err)
					assert.Equal(t, tc.takes, took.Round(ms))
				}
				assert.Equal(t, 4, dials(n, 5432), "all four were tried, none is new")
				if tc.err != nil {
					_, err := query(db, 3*time.Second)
					assert.NoError(t, err)
					assert.Equal(t, 5, dials(n, 5432))
				}
			}, tenms)
		})
	}
}
