package testkit_test

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
)

// TestNetwork_Failures checks the effects of each failure on an open and on a new connection to a server that returns
// what it receives.
func TestNetwork_Failures(t *testing.T) {
	for _, test := range []struct {
		name         string
		fail         func(*testkit.Network)
		dial, answer error // of a new connection
		stays        bool  // the open connection
	}{
		{"Stop", (*testkit.Network).Stop, syscall.ECONNREFUSED, nil, false},
		{"Cut", (*testkit.Network).Cut, nil, syscall.ECONNRESET, false},
		{"Stall", (*testkit.Network).Stall, nil, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &testkit.Network{Dial: func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						_, _ = io.Copy(far, far)
						_ = far.Close()
					}()
					return near, nil
				}}
				open, err := n.DialContext(t.Context(), "tcp", "any")
				require.NoError(t, err)
				echo := func(conn net.Conn) error {
					if _, err := conn.Write([]byte("hello")); err != nil {
						return err
					}
					_, err := io.ReadFull(conn, make([]byte, 5))
					return err
				}
				require.NoError(t, echo(open))

				test.fail(n)
				time.AfterFunc(time.Minute, n.Heal)
				start := time.Now()
				other, err := n.DialContext(t.Context(), "tcp", "any")
				require.ErrorIs(t, err, test.dial)
				if test.dial == nil {
					require.ErrorIs(t, echo(other), test.answer)
					require.NoError(t, other.Close())
				}
				if test.stays {
					require.Equal(t, time.Minute, time.Since(start), "data arrives after Heal")
					require.NoError(t, echo(open))
				} else {
					require.ErrorIs(t, echo(open), syscall.ECONNRESET)
					require.Zero(t, time.Since(start))
				}
				require.NoError(t, open.Close())
				require.Error(t, echo(open))

				<-time.After(2 * time.Minute)
				healed, err := n.DialContext(t.Context(), "tcp", "any")
				require.NoError(t, err)
				require.NoError(t, echo(healed))
				require.NoError(t, healed.Close())
			})
		})
	}
}

// TestNetwork_CloseWhileStalled checks that a client can close a connection that waits for the end of a stall.
func TestNetwork_CloseWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &testkit.Network{Dial: func(context.Context, string, string) (net.Conn, error) {
			near, _ := net.Pipe()
			return near, nil
		}}
		n.Stall()
		conn, err := n.DialContext(t.Context(), "tcp", "any")
		require.NoError(t, err)
		_, err = conn.Write([]byte("hello"))
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = conn.Close() })
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
